import torch


def inputs():
    return (torch.randn(4, 16),)
