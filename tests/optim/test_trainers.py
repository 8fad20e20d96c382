"""The migrations of docs/your-own-training.md: Lightning and the Trainer of Hugging Face, where they install."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from door import examples, network
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from suite.optim import SMA

pytestmark = pytest.mark.filterwarnings("ignore")


def error(model: nn.Module) -> float:
    inputs, targets = examples()
    return float((model(inputs).argmax(1) != targets).float().mean())


def test_a_lightning_module_returns_the_optimiser(tmp_path: Path):
    lightning = pytest.importorskip("pytorch_lightning")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def training_step(self, batch, number):
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            self.opt = SMA(self.model, base=torch.optim.AdamW, lr=0.01, learners=2)
            return self.opt

    module = Module()
    loader = DataLoader(TensorDataset(*examples()), batch_size=12, shuffle=True)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=12, default_root_dir=str(tmp_path), **quiet)
    trainer.fit(module, loader)
    assert module.opt.t == 12 * 8 // 2
    assert error(module.opt.average()) < 0.1


def test_a_trainer_of_hugging_face_is_handed_the_optimiser(tmp_path: Path):
    transformers = pytest.importorskip("transformers")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def forward(self, pictures, labels):
            logits = self.model(pictures)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    inputs, targets = examples()
    dataset = [{"pictures": x, "labels": y} for x, y in zip(inputs, targets, strict=True)]
    model = Model()
    opt = SMA(model, base=torch.optim.AdamW, lr=0.01, learners=2)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1.0)
    arguments = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=12, num_train_epochs=12, max_grad_norm=0.0, use_cpu=True,
        save_strategy="no", report_to=[], disable_tqdm=True,
    )  # fmt: skip
    transformers.Trainer(model, arguments, train_dataset=dataset, optimizers=(opt, schedule)).train()
    assert opt.t == 12 * 8 // 2
    assert error(opt.average().model) < 0.1
