"""Wakes the TorchScript compiler and the math libraries in the zygote, once, so that not every child has to.

The first script, load and call of a process compile tables (decompositions, shape functions, builtins) for 30 to
90 ms, whatever the model, and the first sizing of the pools takes up to 15 ms. Only integers are computed here: no
tensor, no kernel, no thread pool, so ``fork`` stays safe. Children start from there; the first calls that the gate
reports come from the fresh processes of the benchmark.
"""

import io
import warnings

import torch

CALLS = 3  # unoptimised, profiled, optimised


class Successor(torch.nn.Module):
    """A module without a tensor in it."""

    def forward(self, number: int):
        return number + 1


def wake():
    """Script, save, load and call a module of integers."""
    torch.set_num_threads(1)  # makes no thread; a child sizes its pools itself, at no cost from here on
    call_loaded(Successor(), 0)


def call_loaded(module, argument, device="cpu"):
    """Script, save and load a module, and call it as often as it takes to be optimised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript's deprecation, from 2.11 on
        archive = io.BytesIO()
        torch.jit.save(torch.jit.script(module), archive)
        archive.seek(0)
        loaded = torch.jit.load(archive, map_location=device)
        for _ in range(CALLS):
            loaded(argument)
