"""`cutaway` as a model's name in lm-eval, beside its own `hf`, `vllm` and others.

    python -m cutaway.evaluate.lm_eval run --model cutaway --model_args pretrained=gpt2 --tasks lambada_openai

This is lm-eval's own command line with one name more: it finds models in a table of its own, which no installed package
can add to before it starts. In Python, importing this module adds the name.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from cutaway.errors import CutawayError, nearest
from cutaway.evaluate.harness import adapter
from cutaway.loading import load
from cutaway.tasks.scores import library

NAME = "cutaway"
ARGUMENTS = ("pretrained", "device", "dtype", "engine", "weights")
"""What `--model_args` may say: the model's name or folder, and what else `cutaway.load` takes."""
PASSED_OVER = ("batch_size", "max_batch_size")
"""What lm-eval hands to every model; texts are put together here by their tokens, not by their number."""

USUAL_DEVICE = "cuda:0"
"""What lm-eval's command line says where nobody chose a device, whether the machine has one or not."""


def register() -> None:
    """Add the name to lm-eval's table; done once."""
    registry = library("lm_eval.api.registry", "lm-eval")
    library("lm_eval.models", "lm-eval")  # fills the table with lm-eval's own
    base = adapter()

    class Cutaway(base):  # type: ignore[misc, valid-type]
        """What lm-eval makes of `--model cutaway --model_args ...`."""

        def __init__(self, **arguments: Any):
            for name in arguments:
                if name not in (*ARGUMENTS, *PASSED_OVER):
                    known = ", ".join(ARGUMENTS)
                    raise CutawayError(f"--model_args has no {name!r}: it has {known}.{nearest(name, ARGUMENTS)}")
            given = {name: value for name, value in arguments.items() if name in ARGUMENTS}
            if given.get("device") == USUAL_DEVICE and not torch.cuda.is_available():
                del given["device"]
            super().__init__(load(given.pop("pretrained", "builtin"), **given))

    if NAME not in registry.model_registry:
        registry.model_registry.register(NAME, target=Cutaway)


def main() -> int:
    """lm-eval's command line; a person's mistake is one line, as everywhere in Cutaway."""
    try:
        register()
        library("lm_eval.__main__", "lm-eval").cli_evaluate()
    except CutawayError as error:
        print(f"cutaway: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
else:
    register()
