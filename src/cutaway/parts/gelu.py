"""GPT-2's GELU; and for training on a processor, its slope computed on the way up, while the values are in the cache.

    y = x s,  s = sigmoid(2u),  u = sqrt(2/pi) (x + 0.044715 x^3)        the tanh form, since tanh u = 2 sigmoid(2u) - 1
    dy/dx = s + y (1 - s) 2 du/dx

torch's own kernel goes through tanh twice, once each way, and takes two and a half times as long; the result differs in
the last bit or two. What is kept for the way back is as large as before: the slope in place of the input.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = LINEAR * 0.044715
IN_CACHE = 160_000
"""How many values are worked on at a time: few enough for a core's own cache."""


def gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")  # 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))


def fast_gelu(x: Tensor) -> Tensor:
    """`gelu_tanh`, faster where there is a way back to come."""
    if x.requires_grad and torch.is_grad_enabled() and x.dtype == torch.float32 and x.device.type == "cpu":
        y: Tensor = WithSlope.apply(x)
        return y
    return gelu_tanh(x)


class WithSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        values = x.reshape(-1)
        result, slope = torch.empty_like(values), torch.empty_like(values)
        a, b = values.new_empty(2, min(IN_CACHE, values.numel()))
        for start in range(0, values.numel(), IN_CACHE):
            some = slice(start, start + IN_CACHE)
            v, y, s = values[some], result[some], slope[some]
            inner, rest = a[: len(v)], b[: len(v)]
            torch.mul(v, v, out=inner).mul_(CUBIC).add_(LINEAR)  # 2u / x
            torch.mul(inner, v, out=s).sigmoid_()
            torch.mul(v, s, out=y)
            inner.mul_(3).sub_(2 * LINEAR)  # 2 du/dx
            torch.sub(y, torch.mul(y, s, out=rest), out=rest)  # y (1 - s)
            s.addcmul_(inner, rest)
        ctx.save_for_backward(slope.view_as(x))
        return result.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return slope.mul_(grads[0])  # which nobody needs any more
