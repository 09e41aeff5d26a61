"""Operators that stay whole in a program, because what torch asks for the shapes of their answers is asked here.

Of recurrent layers torch would run every turn for these, which fixes the length at the example's. Releases before 2.15
have nothing, or nothing for open sizes, for Fourier transforms and the encoder layer that traces of a transformer hold.
"""

import contextlib

import torch
from torch import _guards
from torch._subclasses import fake_impls

KEY = torch._C.DispatchKey.CompositeImplicitAutograd


def recurrent(sequence, state, parameters, biases, layers, *others):
    """Return empty answers of a recurrent layer: of each step and direction, and the last state."""
    del parameters, biases, others
    directions = state.shape[0] // layers
    output = sequence.new_empty((*sequence.shape[:-1], state.shape[-1] * directions))
    return output, state.new_empty(state.shape)


def lstm(sequence, states, *others):
    output, hidden = recurrent(sequence, states[0], *others)
    return output, hidden, states[1].new_empty(states[1].shape)


def packed(layer):
    """Return the same for a packed sequence, which has its sizes of batches as the second argument."""
    return lambda *arguments: layer(arguments[0], *arguments[2:])


def pack(mode, operator, sequence, lengths, batch_first):
    """Return a packed sequence without content: torch's own has as many rows as steps, and sizes that are floats."""
    del operator, lengths, batch_first
    rows, steps = (mode.shape_env.create_unbacked_symint() for _ in range(2))
    for size in (rows, steps):
        torch._check(size >= 1)
    return sequence.new_empty((rows, *sequence.shape[2:])), sequence.new_empty((steps,), dtype=torch.int64)


def padded(data, batch_sizes, batch_first, padding, length):
    """Return a sequence padded to ``length``, a symbol, which the operator does not take: it is lengthened after it."""
    output, lengths = torch.ops.aten._pad_packed_sequence(data, batch_sizes, batch_first, padding, AS_LONG_AS_IT_IS)
    steps = output.shape[1 if batch_first else 0]
    if str(steps) != str(length):
        after_steps = output.dim() - (2 if batch_first else 1)
        output = torch.ops.aten.constant_pad_nd(output, [0, 0] * after_steps + [0, length - steps], padding)
    return output, lengths


def pad(data, batch_sizes, batch_first, *others):
    del others
    sequences, steps = _guards.detect_fake_mode(data).shape_env.create_unbacked_symint(), batch_sizes.shape[0]
    torch._check(sequences >= 1)
    sizes = (sequences, steps) if batch_first else (steps, sequences)
    return data.new_empty((*sizes, *data.shape[1:])), data.new_empty((sequences,), dtype=torch.int64)


def fourier_real(mode, operator, value, axes, *how):
    del mode, operator
    shape, (_, onesided) = list(value.shape), how
    shape[axes[-1]] = shape[axes[-1]] // 2 + 1 if onesided else shape[axes[-1]]
    return value.new_empty(shape, dtype=value.dtype.to_complex())


def fourier_back(mode, operator, value, axes, *how):
    del mode, operator
    shape, (_, last_size) = list(value.shape), how
    shape[axes[-1]] = last_size
    return value.new_empty(shape, dtype=value.dtype.to_real())


def as_first(mode, operator, value, *others):
    del mode, operator, others
    return value.new_empty(value.shape)


def missing():
    """Return the operators for which a release has no shapes: those before 2.15."""
    if tuple(map(int, torch.__version__.split(".")[:2])) >= FIRST_WITH_SHAPES:
        return {}
    aten = torch.ops.aten
    return {
        aten._fft_r2c.default: fourier_real,
        aten._fft_c2r.default: fourier_back,
        aten._fft_c2c.default: as_first,
        aten._transformer_encoder_layer_fwd.default: as_first,
    }


FIRST_WITH_SHAPES = (2, 15)
AS_LONG_AS_IT_IS = -1
LAYERS = {"lstm": lstm, "gru": recurrent, "rnn_relu": recurrent, "rnn_tanh": recurrent}


@contextlib.contextmanager
def operators():
    """Have torch ask here."""
    of_name = {name: getattr(torch.ops.aten, name) for name in LAYERS}
    layers = {of_name[name].input: layer for name, layer in LAYERS.items()}
    layers.update({of_name[name].data: packed(layer) for name, layer in LAYERS.items()})
    layers[torch.ops.aten._pad_packed_sequence.default] = pad
    before = {operator: operator.py_kernels.get(KEY) for operator in layers}
    known, own = fake_impls.op_implementations_dict, dict(fake_impls.op_implementations_dict)
    set_kernels(layers)
    known.update({torch.ops.aten._pack_padded_sequence.default: pack, **missing()})
    try:
        yield
    finally:
        set_kernels(before)
        known.clear()
        known.update(own)


def set_kernels(kernels):
    for operator, kernel in kernels.items():
        operator._dispatch_cache.clear()  # it remembers what it had
        if kernel is None:
            operator.py_kernels.pop(KEY, None)
        else:
            operator.py_kernels[KEY] = kernel


@contextlib.contextmanager
def in_loops():
    """Have the compiler take recurrent operators for loops of any length, where the release has these."""
    try:
        from torch.export import _patches
    except ImportError:
        yield
        return
    with _patches.register_lstm_while_loop_decomposition(), _patches.register_gru_while_loop_decomposition():
        for operator in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
            operator._dispatch_cache.clear()
        yield
