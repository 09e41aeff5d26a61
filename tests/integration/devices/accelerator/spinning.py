"""A model whose kernel spins until what is launched after it has run: CUDA promises to run kernels at the same time to nobody.

Needs ``torch.ops.fakedev``: no operator of torch has such a kernel.
"""

import torch
from torch import Tensor, nn

from fixtures.declare import Sample, model


class Meeting(nn.Module):
    """With kernels that are loaded at their first launch, after all that the device does, it waits for ever.

    https://github.com/meta-pytorch/torchcomms/pull/2334 has the same without torch.
    """

    def __init__(self, loads_before: bool):
        super().__init__()
        self.loads_before = loads_before

    def forward(self, x: Tensor) -> Tensor:
        flag = torch.zeros([1], dtype=torch.int32, device=x.device)
        if self.loads_before:
            once = torch.sin(x)
            flag.fill_(0)
            torch.ops.fakedev.spin_until(flag)
        else:
            torch.ops.fakedev.spin_until(flag)
            once = torch.sin(x)
        answer = torch.sin(once)
        flag.fill_(1)
        return answer * flag  # else nobody needed the flag, and TorchScript left its kernels out


@model("kernels_meet", tags=("modules",), timed=False, covers=("fakedev::spin_until",))
def kernels_meet():
    return Sample(Meeting(False), example=(torch.randn(4, 8),), batch_7=(torch.randn(7, 8),))


@model("kernels_loaded_before", tags=("modules", "twin"), timed=False, covers=("fakedev::spin_until",))
def kernels_loaded_before():
    return Sample(Meeting(True), example=(torch.randn(4, 8),), batch_7=(torch.randn(7, 8),))
