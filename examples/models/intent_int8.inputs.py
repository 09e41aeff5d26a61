import torch


def inputs():
    return {"four": (torch.randn(4, 16),), "seven": (torch.randn(7, 16),)}
