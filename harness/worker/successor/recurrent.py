"""Recurrent layers under ``torch.export``: their operators stay whole in a program, which then takes every length.

While it traces, torch asks an operator for the shapes of its answers, and what it has for these runs turn by turn: that
alone fixes the length at the example's.
"""

import contextlib

import torch

KEY = torch._C.DispatchKey.CompositeImplicitAutograd


def of_sequence(sequence, state, features):
    return sequence.new_empty((*sequence.shape[:-1], features)), state.new_empty(state.shape)


def lstm(sequence, state, parameters, has_biases, layers, dropout, train, both_ways, batch_first):
    output, hidden = of_sequence(sequence, state[0], state[0].shape[-1] * (2 if both_ways else 1))
    return output, hidden, state[1].new_empty(state[1].shape)


def lstm_packed(data, batch_sizes, state, parameters, has_biases, layers, dropout, train, both_ways):
    return lstm(data, state, parameters, has_biases, layers, dropout, train, both_ways, False)


def recurrent(sequence, state, parameters, has_biases, layers, dropout, train, both_ways, batch_first):
    return of_sequence(sequence, state, state.shape[-1] * (2 if both_ways else 1))


def recurrent_packed(data, batch_sizes, state, parameters, has_biases, layers, dropout, train, both_ways):
    return of_sequence(data, state, state.shape[-1] * (2 if both_ways else 1))


SHAPES = {"lstm": (lstm, lstm_packed), **dict.fromkeys(("gru", "rnn_relu", "rnn_tanh"), (recurrent, recurrent_packed))}


@contextlib.contextmanager
def whole():
    """Have torch ask here for the shapes of recurrent operators."""
    operators = {
        getattr(getattr(torch.ops.aten, name), overload): function
        for name, functions in SHAPES.items()
        for overload, function in zip(("input", "data"), functions)
    }
    before = {operator: operator.py_kernels.get(KEY) for operator in operators}
    set_kernels(operators)
    try:
        yield
    finally:
        set_kernels(before)


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
