"""The living view in a real browser: what it draws is Python's, and it is moved through by hand, by key and by link."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from cutaway.inspect.arithmetic import explain
from cutaway.inspect.runs import run
from cutaway.models.architecture import places

TEXT = "A robot must obey orders"
SAID = "document.querySelector('canvas.living').describe()"


def at(step: str = "whole", text: str = TEXT, **more: object) -> str:
    return f"#/walk?text={quote(text)}&step={step}" + "".join(f"&{name}={value}" for name, value in more.items())


def drawn(page, settle) -> dict:
    page.wait_for_function(f"(() => {{ const said = {SAID}; return said.river.length && said.choice.length }})()")
    settle(page)
    return page.evaluate(SAID)


@pytest.fixture(scope="module")
def long_text(long_lm) -> str:
    return long_lm.tokenizer.decode(long_lm.ids("the little fox was on the other side of the hill " * 100)[:1_000])


def test_every_length_weight_and_chance_of_the_picture_is_pythons(show, settle, builtin):
    seen = run(builtin, TEXT)
    said = drawn(show(at()), settle)
    assert [(one["position"], one["id"]) for one in said["columns"]] == list(enumerate(seen.ids))
    streams = {name for name, place in places(builtin.config).items() if place.operation in ("add", "look up")}
    assert streams <= {one["name"] for one in said["river"]}
    for one in said["river"]:
        assert one["length"] == pytest.approx(float(seen[one["name"]][one["position"]].norm()), rel=1e-4)
    assert said["arcs"]
    for arc in said["arcs"]:
        assert arc["from"] < arc["to"]  # nothing comes from the future
        weight = float(seen[arc["name"]].mean(0)[arc["to"], arc["from"]])
        assert arc["weight"] == pytest.approx(weight, rel=1e-3, abs=1e-5)
    best = builtin.predict(TEXT, k=10)
    assert [one["id"] for one in said["choice"]] == [one.id for one in best]
    assert [one["share"] for one in said["choice"]] == pytest.approx([one.probability for one in best], rel=1e-4)
    for column in said["columns"]:
        shares = seen.logits([column["position"]])[0].softmax(-1)
        assert column["expected"] == int(shares[: len(builtin.tokenizer)].argmax())
        assert column["share"] == pytest.approx(float(shares.max()), rel=1e-3)


def test_the_list_of_stops_has_every_stop_with_pythons_numbers_and_leads_there(show, settle, builtin):
    seen = run(builtin, TEXT)
    page = show(at(position=2))
    page.locator(".list summary").click()
    page.wait_for_selector("[data-length='blocks.1.mlp.hidden']")
    said = page.evaluate(SAID)
    assert page.locator(".stops li").count() == len(said["stops"])
    shown = page.eval_on_selector_all("[data-length]", "all => all.map(one => [one.dataset.length, one.dataset.value])")
    vectors = {name for name, place in places(builtin.config).items() if place.axes[-1] == "column"} - {"logits"}
    assert {name for name, _ in shown} == vectors
    for name, length in shown:
        whole = seen[name].float()
        vector = whole[:, 2].flatten() if whole.ndim == 3 else whole[2]
        assert float(length) == pytest.approx(float(vector.norm()), rel=1e-4), name
    page.locator(".stops button", has_text="blocks.1.mlp.hidden").click()
    page.wait_for_function("location.hash.includes('step=widen') && location.hash.includes('layer=1')")


def test_one_goes_nearer_and_out_again_by_key_and_the_link_restores_it(show, settle):
    page = show(at("widen", layer=1))
    page.locator("h1").focus()
    assert drawn(page, settle)["level"] == "block"
    for level in ("head", "matrix", "cell"):
        page.keyboard.press("+")
        page.wait_for_function("level => location.hash.includes(`level=${level}`)", arg=level)
    settle(page)
    again = show(page.url.split("/", 3)[3])
    assert drawn(again, settle)["level"] == "cell"
    for level in ("matrix", "head", "block", "machine"):
        page.keyboard.press("Escape")
        page.wait_for_function(f"level => {SAID}.level === level", arg=level)


def test_a_double_click_enters_what_is_pointed_at(show, settle):
    page = show(at())
    drawn(page, settle)
    box = page.locator("canvas.living").bounding_box()
    spot = page.evaluate("document.querySelector('canvas.living').where('mlp_norm', 3)")
    page.mouse.dblclick(box["x"] + spot["x"], box["y"] + spot["y"])
    page.wait_for_function(f"{SAID}.level === 'block' && {SAID}.stop.layer === 3")


def test_a_number_in_the_picture_opens_how_it_was_made(show, settle, builtin):
    page = show(at("attention_norm", layer=1, level="cell"))
    drawn(page, settle)
    box = page.locator("canvas.living").bounding_box()
    chosen = int(page.locator("[data-made=address]").inner_text().split("[")[2].rstrip("]"))
    column = chosen + 1 if chosen < builtin.config.width - 1 else chosen - 1
    spot = page.evaluate("column => document.querySelector('canvas.living').where('attention_norm', 1, column)", column)
    page.mouse.click(box["x"] + spot["x"], box["y"] + spot["y"])
    page.wait_for_function("part => location.hash.includes(part)", arg=f"cell=out.0.{column}")
    settle(page)
    value = float(page.locator("[data-made=value] data").get_attribute("value"))
    assert value == pytest.approx(explain(run(builtin, TEXT), "blocks.1.attention.norm", -1, column).value, rel=1e-4)


def test_the_bar_scrubs_the_whole_pass_and_one_at_a_time_the_text(show, settle):
    page = show(at())
    stops = drawn(page, settle)["stops"]
    wanted = next(one for one in stops if one["name"] == "blocks.1.attention.weights")
    page.get_by_role("slider", name="The forward pass").fill(str(wanted["n"]))
    page.wait_for_function("location.hash.includes('step=softmax') && location.hash.includes('layer=1')")
    page.get_by_text("One at a time").click()
    page.get_by_role("slider", name="The token being computed").fill("2")
    page.wait_for_function("location.hash.includes('position=2') && location.hash.includes('mode=alone')")


def test_the_story_plays_through_and_vectors_are_on_their_way(show, settle):
    page = show(at())
    page.emulate_media(reduced_motion="no-preference")
    drawn(page, settle)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"{SAID}.stop.n >= 2")
    page.get_by_role("button", name="Pause").click()
    stop = page.evaluate(f"{SAID}.stop.step")
    page.wait_for_function("step => location.hash.includes(`step=${step}`)", arg=stop)


def test_the_story_takes_ninety_seconds_whatever_the_model(show, settle):
    for model in ("builtin", "long"):
        page = show(at(model=model))
        page.wait_for_selector("canvas.living")
        told = page.evaluate("document.querySelector('canvas.living').told()")
        assert told == pytest.approx(90, rel=1e-3)


def test_the_gallery_shows_pythons_numbers_of_every_example(show, settle, builtin):
    from cutaway.inspect import gallery

    page = show("#/gallery?text=hello&layer=1&head=2")
    page.wait_for_selector("[data-exhibit=sizes] tbody tr")
    settle(page)
    assert page.locator(".exhibit .picture-of").count() == 7 and page.locator("main [role=alert]").count() == 0
    words = gallery.four_words(builtin, 1, 2)

    def shown() -> list[float]:
        cells = page.locator("[data-exhibit=words] td data").all()
        return [float(one.get_attribute("value")) for one in cells]

    for name, table in (
        ("With the mask", words.masked),
        ("Without the mask", words.unmasked),
        ("Scores", words.scores),
    ):
        page.get_by_text(name, exact=True).click()
        settle(page)
        assert shown() == pytest.approx(table.flatten().tolist(), rel=1e-4, abs=1e-6), name
    weights = page.eval_on_selector_all(
        "[data-exhibit=mixture] tr[data-weight]", "all => all.map(one => +one.dataset.weight)"
    )
    assert weights == pytest.approx(sorted(gallery.mixture(builtin).weights.tolist(), reverse=True)[:6], rel=1e-4)
    loop = gallery.loop(builtin)
    for name, written in (("greedy", loop.greedy), ("drawn", loop.drawn)):
        there = page.locator(f"[data-written={name}]")
        assert there.locator(".round").count() == len(written.tokens)
        assert there.get_attribute("data-period") == str(written.period or "")
    page.locator("[data-exhibit=words] .door").click()
    page.wait_for_function("location.hash.startsWith('#/attention') && location.hash.includes('robot')")


@pytest.mark.parametrize("language", ["en", "ru", "zh-CN"])
def test_no_table_of_the_gallery_is_wider_than_its_place(show, settle, language):
    page = show("#/gallery?text=hello", language=language)
    page.wait_for_selector("[data-exhibit=sizes] tbody tr")
    settle(page)
    boxes = page.eval_on_selector_all(
        ".exhibit .scroll", "all => all.map(one => [one.ariaLabel, one.scrollWidth - one.clientWidth])"
    )
    assert len(boxes) >= 3 and [name for name, more in boxes if more > 0] == []


def test_generate_plays_once_by_itself_for_those_who_do_not_mind_motion(show, settle):
    page = show("#/predict?text=Once+upon+a+time")
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("location.hash = '#/generate?text=Once+upon+a+time'")
    page.wait_for_function("location.hash.includes('n=3')")
    page.get_by_role("button", name="Pause").click()


@pytest.mark.parametrize(("width", "language"), [(1280, "en"), (390, "ru")])
def test_the_picture_stays_where_it_is_from_stop_to_stop(show, settle, width, language):
    page = show(at("input_norm", layer=0), width=width, language=language)
    drawn(page, settle)
    top = """() => {
      let y = document.querySelector('canvas.living').getBoundingClientRect().top;
      for (const one of [document.scrollingElement, document.querySelector('main')]) y += one.scrollTop;
      return Math.round(y);
    }"""
    tops = set()
    for _ in range(18):  # through the first block, into the second
        tops.add(page.evaluate(top))
        before = page.evaluate(f"{SAID}.stop.n")
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"n => {SAID}.stop.n === n + 1", arg=before)
    assert len(tops) == 1, tops


def moves(page, drawing: str) -> None:
    """One look after the other, each alone: what is shown is asked of the drawing itself, its clock set by hand."""
    looks = page.evaluate(
        """(drawing) => {
          const root = new DOMParser().parseFromString(drawing, 'image/svg+xml').documentElement;
          document.body.append(root);
          root.pauseAnimations();
          const looks = [...root.children].filter((one) => one.tagName === 'g');
          const shown = (seconds) => {
            root.setCurrentTime(seconds);
            return looks.flatMap((one, n) => (getComputedStyle(one).display === 'none' ? [] : [n]));
          };
          const begins = looks.map((one) => Number(/begin\\+([\\d.]+)s/.exec(one.firstChild.getAttribute('begin'))[1]));
          const at = [0, ...begins.slice(1)].map((seconds) => shown(seconds + 0.0005));
          const used = [...root.querySelectorAll('use')].map((one) => one.getAttribute('href'));
          const holes = used.filter((href) => !root.querySelector(href)).length;
          const found = { at, holes, differ: new Set(looks.map((one) => one.innerHTML)).size };
          root.remove();
          return found;
        }""",
        drawing,
    )
    assert len(looks["at"]) >= 2 and looks["at"] == [[n] for n in range(len(looks["at"]))]
    assert looks["differ"] == len(looks["at"]) and looks["holes"] == 0


def test_a_stretch_of_it_is_recorded_as_a_film_as_a_gif_and_as_a_drawing(show, settle):
    page = show(at())
    drawn(page, settle)
    page.emulate_media(reduced_motion="no-preference")
    kinds = {"film": (".webm", ".mp4"), "animation": (".gif",), "moving vector graphic": (".svg",)}
    for kind, endings in kinds.items():
        before = page.evaluate(f"{SAID}.stop.n")
        page.locator("summary", has_text="Save, record").click()
        page.get_by_role("button", name=kind).click()
        page.wait_for_function(f"n => {SAID}.stop.n >= n + 1", arg=before)
        with page.expect_download() as made:
            page.get_by_role("button", name="Stop and save").click()
        film = Path(made.value.path()).read_bytes()
        assert made.value.suggested_filename.endswith(endings)
        if kind == "film":
            assert film[:4] == bytes.fromhex("1a45dfa3") or film[4:8] == b"ftyp"  # Matroska, or MP4
        elif kind == "moving vector graphic":
            moves(page, film.decode())
        else:
            assert (
                film[:6] == b"GIF89a" and film[-1:] == b";" and film.count(bytes.fromhex("21f904")) >= 2
            )  # its frames
            width, height = (int.from_bytes(film[at : at + 2], "little") for at in (6, 8))
            box = page.locator("canvas.living").bounding_box()
            assert width <= 720 and width / height == pytest.approx(box["width"] / box["height"], rel=0.02)


@pytest.mark.parametrize("step", ["whole", "softmax", "whole of a long text"])
def test_the_picture_is_saved_as_a_drawing_that_looks_like_the_canvas(show, settle, long_text, step):
    page = show(at(step, layer=1) if step in ("whole", "softmax") else at(text=long_text, model="long"))
    drawn(page, settle)
    page.locator("summary", has_text="Save, record").click()
    with page.expect_download() as made:
        page.get_by_role("button", name="SVG vector graphic", exact=True).click()
    drawing = Path(made.value.path()).read_text()
    # Both side by side in the browser: where one is dark, so is the other; only edges of letters and lines differ.
    far = page.evaluate(
        """async (drawing) => {
          const canvas = document.querySelector('canvas.living'), { width, height } = canvas;
          const image = new Image();
          image.src = URL.createObjectURL(new Blob([drawing], { type: 'image/svg+xml' }));
          await image.decode();
          const other = Object.assign(document.createElement('canvas'), { width, height });
          const pens = [canvas, other].map((one) => one.getContext('2d'));
          pens[1].drawImage(image, 0, 0, width, height);
          const [a, b] = pens.map((pen) => pen.getImageData(0, 0, width, height).data);
          let far = 0;
          for (let i = 0; i < a.length; i += 4) {
            far += Math.abs(a[i] - b[i]) + Math.abs(a[i + 1] - b[i + 1]) + Math.abs(a[i + 2] - b[i + 2]) > 120;
          }
          return far / (a.length / 4);
        }""",
        drawing,
    )
    assert far < 0.04, far
    assert "<text" in drawing and "<image" in drawing


def test_heads_apart_the_tied_matrix_and_the_canvas_as_saved(show, settle, builtin):
    page = show(at(lines="heads"))
    drawn(page, settle)
    page.wait_for_function(f"{SAID}.heads.length > 0")
    said, seen = page.evaluate(SAID), run(builtin, TEXT)
    last = len(seen.ids) - 1
    for arc in said["heads"]:
        weight = float(seen[arc["name"]][arc["head"], last, arc["from"]])
        assert arc["to"] == last and arc["weight"] == pytest.approx(weight, rel=1e-3)
    strong = sum(
        int((seen[one][:, last, :last] >= 0.08).sum()) for one in places(builtin.config) if one.endswith("weights")
    )
    assert len(said["heads"]) == strong
    assert page.locator(".heads li").count() == builtin.config.heads
    assert said["tied"] == ["token_embedding", "logits"]
    menu = page.locator(".ways details", has_text="Save")
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name="SVG vector graphic").click()
    svg = Path(download.value.path()).read_text()
    assert "one matrix" in svg and "<image" in svg and seen.tokens[2].text.replace(" ", "·") in svg
    assert svg.count("hsl(") >= strong  # a line for each head's weight, in its colour
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.get_by_role("button", name="PNG").click()
    picture = Path(download.value.path()).read_bytes()
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert [width, height] == page.evaluate(
        "(({ width, height }) => [width, height])(document.querySelector('.living'))"
    )


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_long_text_is_there_whole_and_says_the_same_as_python(show, settle, long_lm, long_text, width, dark):
    seen = run(long_lm, long_text)
    page = show(at(text=long_text, model="long", position=700), width=width, dark=dark)
    drawn(page, settle)
    page.wait_for_function(f"{SAID}.arcs.length > 0")
    said = page.evaluate(SAID)
    assert [(one["position"], one["id"]) for one in said["columns"]] == list(enumerate(seen.ids))
    assert said["together"] in (2, 4)  # of the tokens that share a column of pixels the longest vector is drawn
    lengths = {name: seen[name].float().norm(dim=-1) for name in {one["name"] for one in said["river"]}}
    assert len(said["river"]) == len(lengths) * len(seen.ids)
    for one in said["river"]:
        assert one["length"] == pytest.approx(float(lengths[one["name"]][one["position"]]), rel=1e-4)
    tables = {name: seen[name].mean(0) for name in places(long_lm.config) if name.endswith("weights")}
    others = [arc for arc in said["arcs"] if arc["to"] != 700]
    assert {arc["name"] for arc in others} == set(tables) and {arc["to"] for arc in said["arcs"]} >= {700}
    assert len(others) < 200 * len(tables)  # what is too small to be seen is not drawn
    for arc in said["arcs"]:
        assert arc["weight"] == pytest.approx(float(tables[arc["name"]][arc["to"], arc["from"]]), rel=1e-3)
    for arc in others:  # the strongest of its token, and of those beside it
        assert arc["weight"] == pytest.approx(float(strongest(tables[arc["name"]], arc["to"])), rel=1e-3)
        assert arc["weight"] >= float(strongest(tables[arc["name"]], arc["to"] ^ 1)) - 1e-6
    window = said["vectors"]
    assert window["first"] <= 700 < window["first"] + window["count"] == window["first"] + 128
    for column in said["columns"][window["first"] :][: window["count"] : 16]:
        shares = seen.logits([column["position"]])[0].softmax(-1)
        assert column["expected"] == int(shares[: len(long_lm.tokenizer)].argmax())


def strongest(table, token):
    """The most that a token gives to another."""
    row = table[token].clone()
    row[token] = 0
    return row.max()


def test_one_goes_into_a_long_text_anywhere_and_finds_its_vectors_there(show, settle, long_text):
    page = show(at(text=long_text, model="long"))
    drawn(page, settle)
    assert page.evaluate(SAID)["vectors"]["first"] == 1_000 - 128
    box = page.locator("canvas.living").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.6)
    for _ in range(9):
        page.mouse.wheel(0, -240)
    page.wait_for_function(f"{SAID}.together === 1 && {SAID}.vectors.first < 800")
    settle(page)
    said = page.evaluate(SAID)
    assert len(said["columns"]) == 1_000 and said["arcs"] == []  # all are there still; a block's steps are in sight
    middle = said["vectors"]["first"] + 64
    assert {one["position"] for one in said["columns"] if one["expected"] is not None} == set(
        range(middle - 64, middle + 64)
    )
    page.keyboard.press("Escape")


def test_a_table_of_a_long_text_has_the_lines_around_the_chosen_token(show, settle, long_lm, long_text):
    page = show(at("softmax", text=long_text, model="long", layer=1, head=2, level="head", position=500))
    drawn(page, settle)
    box = page.locator("canvas.living").bounding_box()
    spot = page.evaluate("document.querySelector('canvas.living').where('softmax', 1)")
    page.mouse.move(box["x"] + spot["x"], box["y"] + spot["y"] + 2)
    words = page.locator("[role=tooltip], .tip").first.inner_text()
    table = run(long_lm, long_text)["blocks.1.attention.weights"][2]
    near = [float(table[row, 500]) for row in range(496, 504)]
    assert any(f"[500]: {value:.4g}"[:9] in words for value in near), (words, near)
