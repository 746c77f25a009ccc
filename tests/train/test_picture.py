"""The loss curve: an SVG that says what the metrics say."""

import math
import xml.etree.ElementTree as ET

import pytest

from cutaway.train.picture import HEIGHT, WIDTH, loss_picture, moving_mean, nice_ticks, thinned

SVG = "{http://www.w3.org/2000/svg}"


def lines(steps=200):
    return [
        {"step": step, "loss": 5 / math.sqrt(step) + step % 3 / 10}
        | ({"held_loss": 5 / math.sqrt(step)} if step % 50 == 0 else {})
        for step in range(1, steps + 1)
    ]


def test_it_draws_the_steps_their_mean_and_what_was_held_out():
    picture = ET.fromstring(loss_picture(lines(), "Loss of <my> model"))
    assert len(picture.findall(f"{SVG}circle")) == 4
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert "Loss of <my> model" in words and "training" in words and "held out" in words and "200" in words


def test_a_lower_loss_is_drawn_lower_and_everything_inside():
    picture = ET.fromstring(loss_picture(lines()))
    dots = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in picture.findall(f"{SVG}circle")]
    assert dots == sorted(dots) and [y for _, y in dots] == sorted(y for _, y in dots)
    for path in picture.findall(f"{SVG}path"):
        for pair in path.get("d")[1:].split("L"):
            if "h" not in pair:
                x, y = map(float, pair.split())
                assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT


@pytest.mark.parametrize("given", [[], [{"step": 1, "loss": 3.0}], [{"step": 1, "loss": math.nan}], lines(20_000)])
def test_any_record_can_be_drawn_and_a_long_one_stays_small(given):
    text = loss_picture(given)
    ET.fromstring(text)
    assert len(text) < 60_000


def test_the_parts():
    assert nice_ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert nice_ticks(1.98, 2.31) == [2.0, 2.1, 2.2, 2.3]
    assert thinned([(n, 0.0) for n in range(5)])[-1] == (4, 0.0)
    assert thinned([(7, 1.0)]) == [(7, 1.0)]
    assert moving_mean([(1, 2.0), (2, 2.0)]) == [(1, 2.0), (2, 2.0)]
