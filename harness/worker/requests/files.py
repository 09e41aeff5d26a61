"""Requests that lie in a file beside an artifact: ``.pt`` and ``.py`` here, flat tensors in modules of their own.

The index of inputs that a worker has recorded is read as well: the gate itself names it in manifests that it writes.
"""

import importlib.util
import os
import pickle
import sys
import tarfile
import traceback
import warnings

import torch

from gate_worker import wire
from gate_worker.requests import flat, npz, safetensors
from gate_worker.requests.values import BadInputs, Call, check_sets, for_each, kept, named
from gate_worker.values import trees

FORM = (
    "expected a tuple with the arguments of one request, or a dict that names input sets: "
    'name -> tuple, or name -> {"method": ..., "arguments": (...)}'
)
ZIP = b"PK\3\4"  # how a file begins that torch.load takes for a zip archive


def read(path, methods, signature_of, seed):
    """Return the calls that the file at ``path`` holds, their tensors on the CPU.

    ``signature_of(method)`` returns a method's arguments, or None where the artifact does not load; asked only where a
    file names arguments. Raises ``BadInputs``: the file cannot be read or does not have the promised form.
    """
    suffix = os.path.splitext(path)[1]
    try:
        if suffix == ".npz":
            return flat.calls(npz.read(path), path, methods, signature_of)
        if suffix == ".safetensors":
            return flat.calls(safetensors.read(path), path, methods, signature_of)
        if suffix == ".pt":
            return calls(_load_tensors(path), path, methods)
        if os.path.basename(path) == wire.TENSORS_INDEX:
            return recorded(path)
        if suffix == ".py":
            return calls(_run_inputs(path, seed), "%s: inputs()" % path, methods)
    except OSError as error:
        raise BadInputs("%s cannot be read: %s" % (path, error.strerror or error))
    raise BadInputs("%s: requests come as .pt, .npz, .safetensors or .py" % path)


def recorded(path):
    """Return the calls whose index ``path`` a worker has written; internal: manifests that the gate writes name it."""
    folder = os.path.dirname(path)
    try:
        reader = trees.TensorReader(folder, "cpu")
        lines = reader.index(folder)
        check_sets([line["set"] for line in lines], path)
        return [Call(line["set"], line["method"], reader.value(line["tree"])) for line in lines]
    except (OSError, BadInputs):
        raise
    except Exception as error:
        raise BadInputs("%s is no index of recorded inputs: %s: %s" % (path, type(error).__name__, str(error)[:200]))


def calls(value, where, methods):
    """Return the calls that ``value`` stands for; ``where`` names its place for messages."""
    value = kept(value, where)
    if isinstance(value, torch.Tensor):
        return for_each("example", methods, (value,))
    if isinstance(value, (tuple, list)):
        return for_each("example", methods, value)
    if not isinstance(value, dict):
        raise BadInputs("%s holds %s; %s" % (where, named(value), FORM))
    if not value:
        raise BadInputs("%s holds an empty dict; %s" % (where, FORM))
    check_sets([name for name in value if isinstance(name, str)], where)
    made = []
    for name, item in value.items():
        place = "%s[%r]" % (where, name)
        if not isinstance(name, str) or not name:
            raise BadInputs("%s: the name of an input set is a string" % place)
        if isinstance(item, (tuple, list)):
            made.extend(for_each(name, methods, item))
        elif isinstance(item, dict) and set(item) == {"method", "arguments"}:
            made.append(_call_of_method(name, item, place))
        else:
            hint = (
                "no keyword arguments: write a tuple in the order of the method's, (%s)" % ", ".join(map(str, value))
                if len(value) > 1
                else "a request whose only argument is a dict is a tuple, ({...},)"
            )
            raise BadInputs("%s: %s is %s; %s" % (hint, place, named(item), FORM))
    return made


def _call_of_method(name, item, place):
    method, arguments = item["method"], item["arguments"]
    if not isinstance(method, str):
        raise BadInputs("%s: the method is %s, expected its name" % (place, named(method)))
    if isinstance(arguments, torch.Tensor):
        arguments = (arguments,)
    if not isinstance(arguments, (tuple, list)):
        raise BadInputs("%s: the arguments are %s, expected a tuple" % (place, named(arguments)))
    return Call(name, method, arguments)


def _refuse_code(path):
    """Refuse what ``torch.load`` runs or unpacks although ``weights_only`` is asked for.

    That is TorchScript, which releases before 2.6 hand to ``torch.jit.load`` wherever a member is called constants.pkl
    (CVE-2025-32434), and tar archives. Names in a zip archive are plain bytes, so no reader sees one that is not found.
    """
    with open(path, "rb") as stream:
        begin = stream.read(4)
        script = begin == ZIP and _holds(stream, b"constants.pkl")
    if script or (begin != ZIP and tarfile.is_tarfile(path)):
        raise BadInputs(
            "%s is %s, which holds more than data: save the requests with torch.save(requests, path)"
            % (path, "TorchScript" if script else "a tar archive")
        )


def _holds(stream, word):
    kept_back = b""
    for chunk in iter(lambda: stream.read(1 << 24), b""):
        if word in (kept_back + chunk).lower():
            return True
        kept_back = chunk[-len(word) :]
    return False


def _load_tensors(path):
    _refuse_code(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except pickle.UnpicklingError as error:
        reason = str(error).rpartition("WeightsUnpickler error:")[2].strip().splitlines()
        raise BadInputs(
            "%s holds more than torch %s reads as plain data (%s): save only tensors, numbers, strings, lists, tuples "
            "and dicts, or put the requests into a .py file with a function inputs()"
            % (path, torch.__version__, reason[0][:200] if reason else "damaged")
        )
    except Exception as error:  # torch has no one error for a damaged file
        raise BadInputs(
            "%s cannot be read by torch.load: %s" % (path, (str(error) or named(error)).splitlines()[0][:300])
        )


def _run_inputs(path, seed):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("gate_requests_of_a_model", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True  # the folder is the user's
    sys.modules[spec.name] = module
    torch.manual_seed(seed)
    try:
        spec.loader.exec_module(module)
        function = getattr(module, "inputs", None)
        if not callable(function):
            raise BadInputs("%s has no function inputs(), which returns the requests" % path)
        return function()
    except BadInputs:
        raise
    except BaseException as error:  # SystemExit too: the file is somebody's program
        raise BadInputs("%s: %s: %s" % (_place(error, path), type(error).__name__, str(error)[:500]))


def _place(error, path):
    """Return file:line of the last line of the request file that led to ``error``."""
    if isinstance(error, SyntaxError) and error.filename:
        return "%s:%s" % (error.filename, error.lineno)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return "%s:%d" % (path, lines[-1]) if lines else path
