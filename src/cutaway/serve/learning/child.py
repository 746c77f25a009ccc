"""A training in a process of its own: `python -m cutaway.serve.learning.child`, questions in, answers out.

A question is a line of JSON, `{"ask": "show", ...}`. So is an answer: `{"said": ...}`, or `{"error": ...}`; where it has
`bytes`, so many follow the line. When standard input ends (the page is gone, or the server is no more) it ends as well.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from cutaway.errors import CutawayError

COMMAND = ["-m", "cutaway.serve.learning.child"]
"""What Python is called with."""
MOST = 50
"""So many steps are taken for one question at most: nobody waits long, and nothing goes on unasked."""


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    import torch

    torch.set_num_threads(1)
    serve(sys.stdin.buffer, out)


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions."""
    pupil = Pupil()
    for line in questions:
        asked = json.loads(line)
        raw = b""
        try:
            said, raw = pupil.answer(asked.pop("ask"), asked)
            answer: dict[str, Any] = {"said": said}
        except CutawayError as error:
            answer = {"error": {"what": str(error), "code": error.code, "values": error.values}}
        except MemoryError:
            answer = {"error": {"what": "There is not enough memory for this.", "code": "memory", "values": {}}}
        answers.write(json.dumps({**answer, "bytes": len(raw)}).encode() + b"\n" + raw)
        answers.flush()


class Pupil:
    """What can be asked."""

    def __init__(self) -> None:
        self.training: Any = None

    def answer(self, ask: str, given: dict[str, Any]) -> tuple[Any, bytes]:
        from cutaway.serve.learning.training import Training

        if ask == "begin":
            self.training = Training(**given)
            return self.training.about(), b""
        training: Training = self.training
        if ask == "show":
            known = given.pop("known")
            training.advance(min(given["step"], training.done + MOST))
            given["step"] = min(given["step"], training.done)
            return {**training.show(**given), "curve": training.curve[known:]}, b""
        if ask == "matrix":
            found = training.matrix(**given)
            return {"shape": list(found.shape)}, found.astype("<f4").tobytes()
        if ask == "save":
            return save(training, **given), b""
        return getattr(training, {"sample": "sample", "cell": "cell"}[ask])(**given), b""


def save(training: Any, step: int, folder: str) -> str:
    """Write the model after a step as any other model: a Hugging Face folder."""
    from cutaway.language_model import LanguageModel

    LanguageModel(training.at(step), training.tokenizer).save(folder)
    return folder


if __name__ == "__main__":
    main()
