"""The paper's tables, figures, method and equations, in its order."""

from __future__ import annotations

from paper_figures.inverse_law import arithmetic, bound, drawing, images, method, short, translation
from suite.papers.artifact import Artifact

ARTIFACTS = (
    Artifact(
        "inverse_law/table1",
        "Image recognition: data, network, size, learning rate, batch sizes",
        short.network_runs,
        (short.measure_networks, short.measure_settings),
    ),
    images.FIG1A,
    images.FIG1B,
    *translation.FIGURES,
    Artifact(
        "inverse_law/alg1",
        "The four-step choice of the batch size",
        short.loop_runs,
        (method.two_points, method.picks_minimum, short.measure_constancy),
    ),
    Artifact(
        "inverse_law/eq1",
        "Time to converge: updates times seconds per update",
        short.loop_runs,
        (short.measure_product,),
    ),
    Artifact(
        "inverse_law/eq2",
        "The inverse law between updates and batch size",
        images.law_runs,
        (images.measure_law, short.measure_noise, short.measure_learners, bound.earlier_bound),
    ),
    Artifact(
        "inverse_law/eq3",
        "Seconds per update: computation plus communication",
        measures=(arithmetic.update_time, method.communication),
    ),
    Artifact(
        "inverse_law/eq4",
        "Compute time with a knee",
        short.loop_runs,
        (method.single_core_knee, short.measure_knee),
        draw=drawing.draw_update_time,
        alt="Seconds per update against batch size with the fitted knee.",
    ),
    Artifact(
        "inverse_law/eq5",
        "Time to converge on P learners",
        short.loop_runs,
        (arithmetic.combined, short.measure_accuracy),
        draw=drawing.draw_times,
        alt="Predicted and measured seconds to converge against batch size.",
    ),
    Artifact("inverse_law/eq6", "With cross-validation", measures=(arithmetic.amortised,)),
    Artifact("inverse_law/eq7", "Time to converge of one learner", measures=(arithmetic.single_learner,)),
    Artifact(
        "inverse_law/eq8",
        "Best batch size of one learner",
        short.loop_runs,
        (arithmetic.knee_is_best, short.measure_choice),
    ),
    Artifact("inverse_law/eq9", "Best batch size of several learners", measures=(arithmetic.several_learners,)),
    Artifact("inverse_law/eq10", "Least time to converge", measures=(arithmetic.least_time,)),
    Artifact(
        "inverse_law/alg-scaling",
        "Strong, weak and optimal scaling",
        measures=(arithmetic.scaling,),
        draw=drawing.draw_scaling,
        alt="Time to converge and batch size against learners under strong, weak and optimal scaling.",
        size=(8.0, 4.0),
    ),
    Artifact("inverse_law/eq12", "Best mix of hardware for a budget", measures=(arithmetic.hardware_mix,)),
    Artifact(
        "inverse_law/eq17",
        "The attentional translation network",
        translation.attention_runs,
        (translation.measure_attention, translation.measure_translations, translation.measure_captions),
    ),
    Artifact(
        "inverse_law/eqbound",
        "The convex bound on updates",
        measures=(bound.recurrence, bound.small_noise, bound.finite_above_floor),
    ),
)
