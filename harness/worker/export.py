"""Verbs ``export`` (build a declared model, record its inputs, make it TorchScript, save it) and ``resave``."""

import importlib.util
import os
import sys
import warnings

import torch

from gate_worker import settings, wire
from gate_worker.graph import operators
from gate_worker.requests import signatures
from gate_worker.values import trees

HARNESS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHIPPED = os.path.join(HARNESS, "shipped")
# Where ``fixtures.declare`` lives, for packages of models outside this project: in a wheel not beside the controller's
# own packages, which must stay out of this environment.
HOME = SHIPPED if os.path.isdir(SHIPPED) else os.path.dirname(HARNESS)


def export(request, run_dir, log):
    declaration = request["declaration"]
    name = declaration["name"]
    log.mark("switches", settings.apply_process_wide(request))
    with log.phase(wire.CONSTRUCT, model=name):
        sample = construct(declaration, request["device"])
    with log.phase(wire.INPUTS, model=name):
        # Before tracing, which runs the module and may change its example in place.
        writer = trees.TensorWriter(os.path.join(run_dir, "inputs"))
        inputs = {set_name: (call.method, tuple(call.args)) for set_name, call in sample.inputs.items()}
        inputs.update({name + wire.WITH_HOOKS: (wire.WITH_HOOKS_METHOD, args) for name, args in hooked(sample, inputs)})
        for set_name, (method, arguments) in inputs.items():
            writer.write(arguments, model=name, set=set_name, method=method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with log.phase(wire.CONVERT, model=name):
            artifact = convert(sample, declaration)
    log.mark("numerics", settings.state(request))  # a factory may have set it otherwise
    with log.phase(wire.SAVE, model=name):
        artifact.save(os.path.join(run_dir, name + ".pt"))
        contained = operators.names(artifact)
    log.mark(
        "exported",
        {
            "operators": contained,
            "input_sets": [
                [set_name, method]
                for set_name, (method, _) in inputs.items()
                if method != wire.WITH_HOOKS_METHOD or signatures.has_hooks(artifact)
            ],
            "warnings": sorted({str(item.message)[:500] for item in caught if relevant(item)}),
        },
    )
    log.emit("ready", model=name, thread=0)


def hooked(sample, inputs):
    """Yield name and arguments of each request of ``forward`` where the root of the model has hooks of its own."""
    root = sample.module
    if getattr(root, "_forward_pre_hooks", None) or getattr(root, "_forward_hooks", None):
        yield from ((name, arguments) for name, (method, arguments) in inputs.items() if method == "forward")


def construct(declaration, device):
    """Import the fixture module, call its factory under its seed, and move everything to the device."""
    if declaration["package_root"]:  # else it is a package of the environment itself
        sys.path.insert(0, declaration["package_root"])
    provide_declare()
    try:
        sys.dont_write_bytecode = True  # the folder is the user's
        module = importlib.import_module(declaration["module"])
        torch.manual_seed(declaration["seed"])
        sample = getattr(module, declaration["factory"])(**dict(declaration["arguments"]))
    except ImportError as error:
        hint = "if this environment lacks it, name it in [tool.compat.environments] extras = [...]"
        kind = ModuleNotFoundError if isinstance(error, ModuleNotFoundError) else ImportError
        raise kind("%s; %s" % (error, hint)) from error
    if isinstance(sample.module, torch.nn.Module):
        sample.module.eval()
        if device != "cpu":
            sample.module.to(device)
    for call in sample.inputs.values():
        call.args = trees.to_device(call.args, device)
    return sample


def provide_declare():
    """Make ``fixtures.declare`` importable whatever else is called ``fixtures`` where the models live."""
    path = os.path.join(HOME, "fixtures", "declare.py")
    spec = importlib.util.spec_from_file_location("fixtures.declare", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["fixtures.declare"] = module
    sys.path.append(HOME)


def convert(sample, declaration):
    """Script or trace, and freeze where declared; exported methods survive the freezing."""
    with torch.no_grad():
        if declaration["how"] == "trace":
            example = next(iter(sample.inputs.values()))
            artifact = torch.jit.trace(sample.module, example.args, check_trace=False)
        else:
            artifact = torch.jit.script(sample.module)
        if declaration["freeze"]:
            methods = {call.method for call in sample.inputs.values()} | {declaration["reset"]}
            artifact = torch.jit.freeze(artifact, preserved_attrs=sorted(methods - {None, "forward"}))
    return artifact


def relevant(item):
    return not issubclass(item.category, (DeprecationWarning, FutureWarning))


def resave(request, run_dir, log):
    declaration = request["declaration"]
    name, given = declaration["name"], declaration["given"]
    log.mark("switches", settings.apply_process_wide(request))
    is_program = given["kind"] == "program"
    with log.phase(wire.LOAD, model=name):
        if is_program:
            made = torch.export.load(given["path"])
        else:
            made = torch.jit.load(given["path"], map_location=request["device"])
    with log.phase(wire.SAVE, model=name):
        if is_program:
            torch.export.save(made, os.path.join(run_dir, name + wire.PROGRAM))
        else:
            made.save(os.path.join(run_dir, name + ".pt"))
    log.emit("ready", model=name, thread=0)
