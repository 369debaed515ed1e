"""Messages name the argument, what it may be, and the nearest match."""

import pytest

from dcem.table.messages import InputError, require_one_of


def test_a_word_that_is_not_among_those_allowed_is_refused_with_the_nearest():
    require_one_of("strategy", "quantile", ("quantile", "uniform"))
    said = "`strategy` must be one of quantile, uniform; got 'quantil'. Did you mean 'quantile'?"
    with pytest.raises(InputError, match="^" + said.replace("?", r"\?") + "$"):
        require_one_of("strategy", "quantil", ("quantile", "uniform"))
    for given in (None, ["quantile"], 3):  # whatever it is, and however many are allowed
        with pytest.raises(InputError, match="`strategy` must be one of a, b; got"):
            require_one_of("strategy", given, {"a": 1, "b": 2})
