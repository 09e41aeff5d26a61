"""What a value must be like for its consumers: rank, sizes, dtype, and for containers what lies in them."""


class ValueRequirements:
    """Partial knowledge of one value; what is not known is None or absent.

    ``sizes`` and ``least`` map a dimension to its exact and its smallest size; dimensions count from the front, or
    from the back where they are negative. ``below`` bounds integers. ``role`` is ``"offsets"``, ``"lengths"``,
    ``"bag"``, ``"state"`` (of a recurrent net) or ``""``. ``items`` maps constant keys and indices of a container to
    the need of what lies there, ``each`` is that of any element. ``words`` are strings that a string is compared with.
    """

    def __init__(self, dtype=None, rank=None, sizes=(), below=None, role=""):
        self.dtype = dtype
        self.rank = rank
        self.sizes = dict(sizes)
        self.least = {}
        self.below = below
        self.role = role
        self.items = {}
        self.each = None
        self.words = []

    def merge(self, other):
        """Take over what ``other`` knows and this does not."""
        if other is None or other is self:
            return self
        self.dtype = self.dtype or other.dtype
        self.role = self.role or other.role
        self._merge_shape(other)
        if other.below is not None:
            self.below = other.below if self.below is None else min(self.below, other.below)
        for key, need in other.items.items():
            self.items[key] = ValueRequirements().merge(self.items.get(key)).merge(need)
        if other.each is not None:
            self.each = ValueRequirements().merge(self.each).merge(other.each)
        self.words += [word for word in other.words if word not in self.words]
        return self

    def _merge_shape(self, other):
        """The larger rank wins: modules that take one example as well as a batch have a branch for each."""
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            if other.rank > self.rank:
                self.rank, self.sizes, self.least = other.rank, dict(other.sizes), dict(other.least)
            return
        self.rank = self.rank if self.rank is not None else other.rank
        for dimension, size in other.sizes.items():
            self.sizes.setdefault(dimension, size)
        for dimension, size in other.least.items():
            self.least[dimension] = max(size, self.least.get(dimension, 0))

    def values(self):
        return ValueRequirements(dtype=self.dtype, below=self.below, role=self.role)

    def reshaped(self, rank, moved):
        """Return this need with ``rank`` and with dimension d moved to ``moved(d)``; None drops it."""
        need = ValueRequirements(dtype=self.dtype, rank=rank, below=self.below, role=self.role)
        for source, target in ((self.sizes, need.sizes), (self.least, need.least)):
            for dimension, size in source.items():
                place = moved(dimension)
                if place is not None:
                    target.setdefault(place, size)
        return need

    def from_front(self):
        """Return this need with all dimensions counted from the front, where the rank is known."""
        if self.rank is None:
            return self
        rank = self.rank
        return self.reshaped(rank, lambda d: d if 0 <= d < rank else d + rank if -rank <= d < 0 else None)

    def without(self, dropped):
        """Return this need without what it says of one dimension; where both may be meant, of the last as well."""
        need = self.from_front()
        if need.rank is None:
            return need.reshaped(None, lambda d: None if d == dropped or (dropped > 0 and d == -1) else d)
        if need.rank is not None and dropped < 0:
            dropped += need.rank
        return need.reshaped(need.rank, lambda d: None if d == dropped else d)

    def permuted(self, order):
        """Return the need of x where this one is that of ``x.permute(order)``."""
        rank = len(order)
        need = ValueRequirements().merge(self)
        need.rank = rank
        return need.from_front().reshaped(rank, lambda d: order[d] % rank)

    def transposed(self, first, second):
        """Return the need of x where this one is that of ``x.transpose(first, second)``."""
        need = self.from_front()
        if need.rank is not None:
            first, second = first % need.rank, second % need.rank
        ends = {first: second, second: first}
        alike = (first < 0) == (second < 0)
        return need.reshaped(
            need.rank, lambda d: ends.get(d, d if need.rank is not None or (alike and (d < 0) == (first < 0)) else None)
        )

    def one_less(self, dimension):
        """Return the need of x where this one is that of ``x.unsqueeze(dimension)``."""
        need = self.from_front()
        if need.rank is not None:
            dimension = dimension % need.rank
            moved = lambda d: None if d == dimension else d - (d > dimension)  # noqa: E731
            return need.reshaped(need.rank - 1, moved)
        if dimension < 0:
            return need.reshaped(None, lambda d: None if d == dimension else d + 1 if d < dimension else d)
        kept = (-1, 0)[dimension > 1]  # before a first or second one the last stays the last
        return need.reshaped(None, lambda d: d if 0 <= d < dimension or kept <= d < 0 or dimension == 0 > d else None)

    def one_more(self, dimension):
        """Return the need of x where this one is that of ``x.select(dimension, ...)`` or ``x.squeeze(dimension)``."""
        need = self.from_front()
        if need.rank is not None:
            dimension = dimension % (need.rank + 1)
            return need.reshaped(need.rank + 1, lambda d: d + (d >= dimension))
        if dimension < 0:
            return need.reshaped(None, lambda d: None if d >= 0 else d - (d <= dimension))
        return need.reshaped(None, lambda d: d if d < 0 or d < dimension else d + 1)
