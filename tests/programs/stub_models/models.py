"""Models for whole runs in stub environments: each naps at every call, so that a run can be cut in two."""

# mypy: ignore-errors

import torch
from fixtures.declare import Sample, model


def napping(**program):
    return Sample(torch.nn.Module(every_call="nap", **program), example=(1,), other=(2,))


@model("well_a", tags=("first",))
@model("well_b", tags=("first",))
@model("well_c", tags=("second",))
@model("well_d", tags=("second",))
def well():
    return napping()


@model("other_answer_in_new", tags=("first",))
def other_answer_in_new():
    return napping(other_answer=7, only_in="2.6.0")


@model("dies_in_new", tags=("second",))
def dies_in_new():
    return napping(load="segfault", only_in="2.6.0")
