"""The notebook's widget in a real browser: its module draws a view, in its own style, beside the notebook's."""

from __future__ import annotations

from cutaway.inspect.attention import attention
from cutaway.inspect.run import run
from cutaway.inspect.widget import module

SHOW = """async ([script, given]) => {
  const made = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
  const model = { get: () => given, on() {}, off() {} };
  const cell = document.createElement('div');
  made.default.render({ model, el: cell });  // not yet attached, as in a notebook
  document.body.append(cell);
  const root = cell.shadowRoot;
  const pixels = (one) => one.getContext('2d').getImageData(0, 0, one.width, one.height).data;
  const drawn = (one) => one?.width && pixels(one).some(Boolean);
  while (!drawn(root.querySelector('canvas'))) await new Promise(requestAnimationFrame);
  const canvas = root.querySelector('canvas');
  const colours = new Set();
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4) if (data[i + 3]) colours.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
  return {
    tokens: [...root.querySelectorAll('.chip')].map((chip) => chip.textContent),
    blue: [...colours].some((one) => { const [r, , b] = one.split(',').map(Number); return b > r + 30; }),
    outside: getComputedStyle(document.body).maxWidth,
  };
}"""


def test_the_module_draws_a_head_in_a_cell(browser, builtin):
    text = "Tom lost his red ball"
    whole = run(builtin, text)
    given = {"view": "attention", "run": whole.to_dict(), "data": attention(whole, 4, 2).to_dict()}
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content("<body></body>")
    found = page.evaluate(SHOW, [module(), given])
    page.close()
    assert not complaints
    assert found["tokens"][: len(whole.tokens)] == [token.text.replace(" ", "·") for token in whole.tokens]
    assert found["blue"], "the colours of the style were not found"
    assert found["outside"] == "none"
