"""What the tests of attempts share: the code of a refusal, which leaves nothing behind."""

from __future__ import annotations

import pytest

from base.errors import CodedError
from forge.models import Assignment


def code_of(create, **changes) -> str:
    before = Assignment.objects.count()
    with pytest.raises(CodedError) as refused:
        create(**changes)
    assert Assignment.objects.count() == before
    return refused.value.code
