"""Values in pickles: built as torch builds them, and of the types that the code declares; else nothing is promised."""

import pytest

from harness.archive.reading import read_artifact
from tests.unit.builders.archives import CODE, MODULE, NOTHING, BytesSource, torchscript

KEY = b"X\x01\x00\x00\x00w"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
HOOKS = b"ccollections\nOrderedDict\n)R"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00K\x02\x85K\x01\x85\x89" + HOOKS + b"tR"
INTS = b"ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R"
WEIGHT = (
    b"ctorch._utils\n_rebuild_qtensor\n("
    + STORAGE.replace(b"Float", b"QInt8")
    + b"K\x00K\x02K\x01\x86K\x01K\x01\x86ctorch\nper_tensor_affine\nG"
    + bytes(8)
    + b"K\x00\x87\x89"
    + HOOKS
    + b"tR"
)
LINEAR = b"c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n)\x81" + WEIGHT + TENSOR + b"\x86b"
NAMES = b"ctorch.jit._pickle\nrestore_type_tag\n}X\x09\x00\x00\x00Dict[str, int]"


def problems(type_: str, value: bytes, constants: bytes = NOTHING) -> str:
    """Return what is said of a module with an attribute ``w`` of ``type_`` that has ``value``."""
    code = CODE.replace("  training", f"  w : {type_}\n  training")
    data = MODULE.replace(b"ub.", KEY + value + b"ub.")
    content = torchscript(code, **{"data.pkl": data, "constants.pkl": constants, "data__0": b"x" * 16})
    return " ".join(item.text for item in read_artifact(BytesSource(content), "net.pt").problems)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("Tensor", TENSOR),
        ("int", b"K\x01"),
        ("Optional[float]", b"N"),
        ("Optional[float]", b"G" + bytes(8)),
        ("List[int]", INTS),
        ("Tuple[int, bool]", b"K\x01\x88\x86"),
        ("Device", b"ctorch\ndevice\nX\x03\x00\x00\x00cpu\x85R"),
        ("Any", INTS),
        ("Any", LINEAR),
    ],
)
def test_what_torch_writes_is_read(type_: str, value: bytes) -> None:
    assert not problems(type_, value)


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("int", b"cos\nsystem\nX\x02\x00\x00\x00id\x85R", "an object where a int is declared"),
        ("Any", b"cos\nsystem\nX\x02\x00\x00\x00id\x85R", "os.system is nothing that torch writes"),
        ("Any", b"ctorch\nTensor\n", "the name torch.Tensor"),
        ("Tensor", TENSOR.replace(b"_v2", b"_v9"), "torch._utils._rebuild_tensor_v9 is nothing that torch writes"),
        ("Tensor", TENSOR.replace(b"OrderedDict", b"OrderedDuct"), "a tensor with hooks"),
        ("Tensor", TENSOR.replace(b"tQ", b"t"), "a tensor without a storage"),
        ("Tensor", TENSOR.replace(b"cpu", b"cpq"), "a storage that torch does not describe so"),
        ("Tensor", TENSOR.replace(b"K\x02\x85", b"K\x03\x85"), "longer than its storage"),
        ("Tensor", TENSOR.replace(b"\x89cc", b"cc"), "another number of arguments"),
        (
            "Tensor",
            TENSOR.replace(b"FloatS", b"LongS").replace(b"\x89cc", b"\x88cc"),
            "a gradient that its dtype has not",
        ),
        ("Tensor", b"N", "nothing where Tensor is declared"),
        ("Any", LINEAR.replace(b"K\x02\x85", b"K\x01\x85"), "a bias of another length than its weight has outputs"),
        ("str", b"K\x01", "a int where a str is declared"),
        ("List[int]", b"](K\x01e", "a list where List[int] is declared"),
        ("List[float]", INTS, "a List[int] where List[float] is declared"),
        ("Tuple[int, int]", b"K\x01\x85", "a tuple of another length"),
        ("Dict[int, int]", NAMES.replace(b"\x09", b"\x0e") + b"\x86R", "where Dict[int,int] is declared"),
        ("Device", b"ctorch\ndevice\nX\x03\x00\x00\x00tpu\x85R", "no device"),
        ("int", b"K\x01X\x01\x00\x00\x00vK\x02", "other attributes than its class declares"),
        ("__torch__.m.Net", b"c__torch__.m\nNet\n)\x81}b", "other attributes than its class declares"),
    ],
)
def test_what_torch_does_not_write_is_named(type_: str, value: bytes, why: str) -> None:
    assert why in problems(type_, value)


@pytest.mark.parametrize(
    ("constants", "why"),
    [
        (b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R\x85.", "builtins.eval is nothing that torch writes"),
        (b"\x80\x02].", "it holds no tuple"),
        (b"\x80\x02K\x01).", "1 values that belong to nothing"),
    ],
)
def test_constants_are_values_and_nothing_else(constants: bytes, why: str) -> None:
    assert why in problems("int", b"K\x01", constants)
