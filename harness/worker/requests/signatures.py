"""What a loaded module can be asked: its methods, and what their arguments are."""

from gate_worker.requests.values import BadInputs


class Argument:
    """One argument of a method, without ``self``: name, TorchScript type, and default value where it has one.

    ``is_foreign``: Python cannot have that value, as those of an enum of the archive; a call can only leave it out.
    """

    def __init__(self, argument):
        self.name = argument.name
        self.type = argument.type
        self.has_default = argument.has_default_value()
        self.is_foreign = False
        try:
            self.default = argument.default_value if self.has_default else None
        except RuntimeError:
            self.default, self.is_foreign = None, True

    def __str__(self):
        shown = "..." if self.is_foreign else repr(self.default)
        return "%s %s" % (self.type.annotation_str, self.name) + (" = " + shown if self.has_default else "")


def methods(module):
    """Return the names of the methods that an artifact has, ``forward`` first where it has one."""
    return sorted(module._c._method_names(), key=lambda name: (name != "forward", name))


def has_hooks(module):
    """Return whether calling the module runs more than its ``forward``: hooks of its root."""
    return bool(module._c._get_forward_pre_hooks() or module._c._get_forward_hooks())


def arguments(module, method):
    """Return the ``Argument`` list of a method that exists."""
    return [Argument(argument) for argument in module._c._get_method(method).schema.arguments[1:]]


def described(module, method):
    return "%s(%s)" % (method, ", ".join(str(argument) for argument in arguments(module, method)))


def require(module, path, method, role="method"):
    """Raise ``BadInputs`` where ``module`` has no such method, with those that it has."""
    names = methods(module)
    if method not in names:
        has = "it has %s" % ", ".join(names) if names else "it has no methods"
        raise BadInputs("%s has no %s %r; %s" % (path, role, method, has))


def require_fit(module, path, call, where):
    """Raise ``BadInputs`` where the number of arguments cannot be right for the method of ``call``."""
    require(module, path, call.method)
    wanted = arguments(module, call.method)
    least = len([argument for argument in wanted if not argument.has_default])
    given = len(call.arguments)
    if least <= given <= len(wanted):
        return
    number = str(least) if least == len(wanted) else "%d to %d" % (least, len(wanted))
    hint = ""
    if least == 1 and given > 1:
        hint = "; for one list or tuple as the only argument put it into a tuple: (value,)"
    raise BadInputs(
        "%s: input set %r gives %d arguments, and %s takes %s%s"
        % (where, call.set_name, given, described(module, call.method), number, hint)
    )
