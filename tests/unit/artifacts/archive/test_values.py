"""Values in pickles: built as torch builds them, and of the types that the code declares; else nothing is promised."""

import pytest

from harness.artifacts.archive.reading import read_artifact
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
CONJUGATE = b"ctorch.jit._pickle\nrestore_type_tag\n}(X\x04\x00\x00\x00conj\x88uX\x0f\x00\x00\x00Dict[str, bool]\x86R"
NEGATIVE = CONJUGATE.replace(b"\x04\x00\x00\x00conj", b"\x03\x00\x00\x00neg")


def tensor(dtype: str, *size: int) -> bytes:
    """Return a tensor that has all its values in one place."""
    numbers = b"(" + b"".join(b"K%c" % length for length in size) + b"t"
    strides = b"(" + b"K\0" * len(size) + b"t"
    stored = STORAGE.replace(b"Float", dtype.encode())
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + stored + b"K\x00" + numbers + strides + b"\x89" + HOOKS + b"tR"


def sparse(layout: int, size: bytes, *parts: bytes) -> bytes:
    whole = b"".join((b"(K%c" % layout, size, b"\x89", *parts, HOOKS, b"tR"))
    return b"ctorch._utils\n_rebuild_sparse_tensor\n" + whole


SQUARE = b"(K\x03K\x03t"
COO = sparse(1, SQUARE, tensor("Long", 2, 4), tensor("Float", 4))
CSR = sparse(2, SQUARE, tensor("Long", 4), tensor("Long", 4), tensor("Float", 4))
COLOR = b"c__torch__.m\nColor\nK\x01R"
NAMES = b"ctorch.jit._pickle\nrestore_type_tag\n}X\x09\x00\x00\x00Dict[str, int]"


def problems(type_: str, value: bytes, constants: bytes = NOTHING) -> str:
    """Return what is said of a module with an attribute ``w`` of ``type_`` that has ``value``."""
    code = CODE.replace("  training", f"  w : {type_}\n  training") + "class Color(Enum):\n  RED = 1\n"
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
        ("Tensor", TENSOR[:-2] + CONJUGATE + b"tR"),
        ("Optional[Tensor]", TENSOR[:-2] + NEGATIVE + b"tR"),
        ("Tensor", COO),
        ("Tensor", CSR),
        ("Tensor", sparse(1, b"(K\x02K\x03t", tensor("Long", 1, 2), tensor("Float", 2, 3))),
        ("Tensor", TENSOR.replace(b"cpu", b"meta").replace(b"\x03\x00\x00\x00meta", b"\x04\x00\x00\x00meta")),
        *(
            ("Tensor", tensor(dtype, 2))
            for dtype in ("Int4", "UInt1", "Float4_e2m1fn_x2", "Bits8", "Bits2x4", "ComplexHalf")
        ),
        ("__torch__.m.Color", COLOR),
        ("Any", COLOR),
        ("Optional[__torch__.m.Color]", COLOR),
        (
            "List[__torch__.m.Color]",
            b"ctorch.jit._pickle\nrestore_type_tag\n](" + COLOR + b"eX\x17\x00\x00\x00List[__torch__.m.Color]\x86R",
        ),
        ("complex", b"cbuiltins\ncomplex\nG" + bytes(8) + b"G" + bytes(8) + b"\x86R"),
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
        ("Tensor", TENSOR[:-2] + CONJUGATE.replace(b"conj", b"conk") + b"tR", "a view of no kind that torch knows"),
        ("Tensor", TENSOR[:-2] + CONJUGATE.replace(b"\x88u", b"\x89u") + b"tR", "a view of no kind that torch knows"),
        ("Tensor", TENSOR[:-2] + b"NtR", "a view of no kind that torch knows"),
        ("Tensor", sparse(3, SQUARE, tensor("Long", 2, 4), tensor("Float", 4)), "a sparse tensor that torch does not"),
        ("Tensor", sparse(2, SQUARE, tensor("Long", 2, 4), tensor("Float", 4)), "a sparse tensor that torch does not"),
        ("Tensor", sparse(1, SQUARE, tensor("Long", 2, 4), tensor("Float", 3)), "parts that do not fit each other"),
        ("Tensor", sparse(1, SQUARE, tensor("Long", 3, 4), tensor("Float", 4)), "parts that do not fit each other"),
        ("Tensor", sparse(2, SQUARE, *[tensor("Long", 4)] * 2, tensor("Float", 3)), "parts that do not fit each other"),
        ("__torch__.m.Color", COLOR.replace(b"K\x01", b"K\x01\x85"), "no value of the enum __torch__.m.Color"),
        ("int", COLOR, "an object where a int is declared"),
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


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("str", b"X\x03\x00\x00\x00\xc3\xa9x", ""),
        ("Tensor", TENSOR, ""),
        ("str", b"K\x01", "a int where a str is declared"),
        ("int", TENSOR, "an object where a int is declared"),
    ],
)
def test_a_default_among_the_constants_is_of_the_type_of_its_parameter(type_: str, value: bytes, why: str) -> None:
    code = CODE.replace("x: Tensor", f"x: Tensor,\n    y: {type_}=CONSTANTS.c0")
    content = torchscript(code, **{"constants.pkl": b"\x80\x02" + value + b"\x85.", "constants__0": b"x" * 16})
    found = " ".join(item.text for item in read_artifact(BytesSource(content), "net.pt").problems)
    assert why in found
    assert bool(why) == bool(found)
