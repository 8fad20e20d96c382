"""A small transformer on text, with AdamW under SMA or Local SGD: killed and taken up again to the same bits.

`torchrun --nproc-per-node 2 transformer.py SMA FOLDER 150`, or `LocalSGD`, keeps its state in FOLDER every ten
updates, in the middle of an epoch too. With one more number process 1 ends after so many updates without a word;
started again without it, the training goes on from the state. Expect a loss of 2.6 or less, in 20 seconds on 2 cores.
"""

import hashlib
import inspect
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from suite.optim import SMA, LocalSGD, share

method, folder, updates = sys.argv[1], sys.argv[2], int(sys.argv[3])
dies = int(sys.argv[4]) if len(sys.argv) > 4 else -1
torch.manual_seed(0)
text = torch.tensor(list(inspect.getsource(nn.functional).encode("ascii", "replace")[:66_000]))
windows = text.view(-1, 33)  # [2000, 33] characters
loader = DataLoader(share(TensorDataset(windows[:1900])), batch_size=16, shuffle=True, drop_last=True)


class Transformer(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.characters, self.places = nn.Embedding(128, width), nn.Embedding(32, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)

    def forward(self, window):  # [b, 33] -> mean loss of the next characters
        x = self.characters(window[:, :-1]) + self.places.weight
        mask = nn.Transformer.generate_square_subsequent_mask(32)
        return nn.functional.cross_entropy(self.head(self.layers(x, mask, is_causal=True)).mT, window[:, 1:])


model = Transformer()
settings = {"base": torch.optim.AdamW, "lr": 3e-3, "weight_decay": 0.01}
opt = SMA(model, **settings) if method == "SMA" else LocalSGD(model, local_steps=4, **settings)
opt.resume(folder)
while opt.t < updates:
    for (window,) in opt.epoch(loader):
        opt.zero_grad()
        model(window).backward()
        opt.step()
        if opt.t % 10 == 0:
            opt.save(folder)
        if opt.t == dies and opt.group.rank == 1:
            os._exit(1)
        if opt.t == updates:
            break
average = opt.average()
digest = hashlib.sha256(nn.utils.parameters_to_vector(average.parameters()).detach().numpy()).hexdigest()
print(f"loss {average(windows[1900:]).item():.3f}, weights {digest[:12]}")
