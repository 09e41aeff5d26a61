import torch


def inputs():
    return (torch.randn(2, 48),)
