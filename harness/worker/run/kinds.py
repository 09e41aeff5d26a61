"""What an artifact is served as: a TorchScript module, an exported program, or a package of AOTInductor."""

from gate_worker.run import serving


def served(run, device, request):
    """Return the model of ``run``; ``load`` comes first, then calls."""
    kind = run["artifact"]["kind"]
    if kind == "torchscript":
        return serving.ServedModel(run, device, request["switches"], request["load"])
    from gate_worker.successor import programs  # imports torch.export, for seconds

    return programs.KINDS[kind](run, device, request)
