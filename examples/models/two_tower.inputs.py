import torch


def inputs():
    return (torch.randint(0, 200, (4, 5)), torch.randn(4, 8))
