"""A watched training is a training: its numbers are those of a plain loop, and every step can be looked at again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.serve.learning.training import ROWS, Training
from cutaway.train.optimizer import learning_rate

TEXT = "".join(f"{n} {n + 1} {n + 2} and the fox ran to the {n}th hill.\n" for n in range(1, 9))
TAKEN = 6


@pytest.fixture(scope="module")
def taught() -> Training:
    training = Training(TEXT, seed=3, steps=40)
    training.advance(TAKEN)
    return training


def plain(training: Training, steps: int) -> tuple[list[float], list[GPT]]:
    """The same in a loop that uses torch alone: logits, cross-entropy, AdamW; the losses, and the models after steps."""
    torch.manual_seed(training.seed)
    model, found, models = GPT(training.model.config), [], []
    matrices = [one for one in model.parameters() if one.ndim > 1]
    others = [one for one in model.parameters() if one.ndim < 2]
    settings = training.settings
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}],
        betas=settings.betas, eps=settings.epsilon,
    )  # fmt: skip
    for step in range(1, steps + 1):
        models.append(copy_of(model))
        windows = torch.tensor(
            np.stack([training.ids[at : at + training.length + 1] for at in training.starts(step)]).astype(np.int64)
        )
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        found.append(loss.item())
    return found, [*models, copy_of(model)]


def copy_of(model: GPT) -> GPT:
    copy = GPT(model.config).eval()
    copy.load_state_dict(model.state_dict())
    return copy


def test_losses_and_weights_are_those_of_a_plain_loop(taught):
    losses, models = plain(taught, TAKEN)
    assert [one["loss"] for one in taught.curve] == pytest.approx(losses, rel=1e-4)
    assert losses[-1] < losses[0]
    for step, model in enumerate(models):
        flat = torch.cat([one.detach().reshape(-1) for one in model.parameters()]).numpy()
        assert np.allclose(taught.kept[step], flat, atol=2e-4), step


def test_predicted_wanted_and_error_are_those_of_the_weights_before_the_step(taught):
    _, models = plain(taught, TAKEN)
    row, position = 3, 5
    shown = taught.show(4, row, position)
    start = taught.starts(4)[row]
    window = torch.from_numpy(taught.ids[start : start + taught.length + 1].astype(np.int64))
    with torch.no_grad():
        before, after, random = (models[n](window[None, :-1])[0, position].softmax(-1) for n in (3, 4, 0))
        losses = F.cross_entropy(models[3](window[None, :-1])[0], window[1:], reduction="none")
    wanted = int(window[position + 1])
    assert shown["starts"] == taught.starts(4) and len(shown["starts"]) == ROWS
    assert shown["wanted"]["id"] == wanted and shown["loss"] == pytest.approx(-before[wanted].log().item(), rel=1e-3)
    assert shown["losses"] == pytest.approx(losses.tolist(), rel=1e-3)
    assert [one["token"]["id"] for one in shown["rows"]].count(wanted) == 1
    for one in shown["rows"]:
        at = one["token"]["id"]
        assert one["predicted"] == pytest.approx(before[at].item(), rel=1e-3)
        assert one["error"] == pytest.approx(before[at].item() - (at == wanted), rel=1e-3)
        assert one["after"] == pytest.approx(after[at].item(), rel=1e-3)
        assert one["random"] == pytest.approx(random[at].item(), rel=1e-3)
    best = before.topk(8).indices.tolist()
    assert {one["token"]["id"] for one in shown["rows"]} >= set(best[:-1])


def test_before_the_first_step_the_random_model_is_shown(taught):
    shown = taught.show(0)
    assert shown["starts"] == taught.starts(1)
    assert all(one["predicted"] == one["random"] == one["after"] for one in shown["rows"])


def test_a_weight_is_moved_by_the_update_against_its_gradient(taught):
    name = "blocks.0.mlp.widen.weight"
    cell = taught.cell(1, name, 7, 9)
    update, gradient = (taught.matrix(1, name, kind) for kind in ("update", "gradient"))
    assert cell["update"] == pytest.approx(float(update[7, 9]), rel=1e-4)
    assert cell["gradient"] == pytest.approx(float(gradient[7, 9]), rel=1e-4)
    assert cell["before"] + cell["update"] == pytest.approx(cell["after"], abs=1e-6)
    far = np.abs(gradient) > 1e-6  # the first step of Adam goes by the sign of the gradient alone
    assert np.mean(np.sign(update[far]) == -np.sign(gradient[far])) > 0.99
    change = taught.matrix(TAKEN, name, "change")
    assert np.array_equal(change, taught.matrix(TAKEN, name) - taught.matrix(0, name)) and np.abs(change).max() > 0


def test_it_goes_the_same_way_again_and_looking_changes_nothing(taught):
    again = Training(TEXT, seed=3, steps=40)
    for step in range(1, TAKEN + 1):
        again.advance(step)
        again.show(step, 2, 4), again.sample(step), again.cell(step, "position_embedding.weight", 0, 0)
    assert np.array_equal(again.kept[: TAKEN + 1], taught.kept[: TAKEN + 1])
    assert again.sample(2) == taught.sample(2) != taught.sample(TAKEN)


def test_steps_are_as_many_as_their_weights_fit_into_the_memory():
    size = Training(TEXT).kept.shape[1]
    training = Training(TEXT, memory=4 * size * 6)
    assert training.steps == 5 and training.kept.nbytes <= 4 * size * 6
    training.advance(99)
    assert training.done == 5


@pytest.mark.parametrize(("text", "code"), [("", "learn_short"), ("a b", "learn_short"), ("a b " * 9_000, "learn_long")])
def test_what_cannot_be_learned_is_said(text, code):
    with pytest.raises(CutawayError) as refused:
        Training(text)
    assert refused.value.code == code


def test_steps_and_matrices_that_are_not_there_are_refused(taught):
    for ask in (
        lambda: taught.show(TAKEN + 1),
        lambda: taught.matrix(0, "nothing"),
        lambda: taught.matrix(99, "position_embedding.weight"),
        lambda: taught.cell(1, "position_embedding.weight", 0, 10_000),
    ):
        with pytest.raises(CutawayError):
            ask()
