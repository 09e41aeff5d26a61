"""An operator library in Python: ``planted::end`` answers its input, and ends the process where that is all zero."""

import os

import torch


def register(namespace, schema, function):
    library = torch.library.Library(namespace, "DEF")
    name = library.define(schema)
    library.impl(name, function, "CPU")
    kept.append(library)


def end(x):
    if not x.any():
        os.abort()
    return x.clone()


kept = []
register("planted", "end(Tensor x) -> Tensor", end)
