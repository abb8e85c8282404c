"""Which query parameters a call takes: as its description says. Every other is refused, so that a misspelt filter lists nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from base.api.parameters import ALL, truth

if TYPE_CHECKING:
    from rest_framework.views import APIView

_known: dict[tuple[type[APIView], str], frozenset[str]] = {}


def refuse_unknown(request: Request, view: APIView) -> None:
    """Raises ValidationError for query parameters that this call does not take, that are there twice, or an `all` that is none."""
    method = request.method or "GET"
    if not request.query_params or method == "OPTIONS" or not hasattr(view, method.lower()):
        return  # what this call is at all is said elsewhere
    problems = {
        name: [said] for name in sorted(request.query_params) if (said := _problem(request, view, name))
    }
    if problems:
        raise ValidationError(problems)


def known_parameters(view: APIView, method: str) -> frozenset[str]:
    """The names of the query parameters that `method` on this view takes."""
    key = type(view), method
    if key not in _known:
        _known[key] = frozenset(_declared(view, method) | _of_a_list(view, method))
    return _known[key]


def _problem(request: Request, view: APIView, name: str) -> str | None:
    if name not in known_parameters(view, request.method or "GET"):
        return "there is no such parameter"
    if len(request.query_params.getlist(name)) > 1:
        return "must be there once"
    return "must be true or false" if name == ALL and truth(request.query_params[name]) is None else None


def _declared(view: Any, method: str) -> set[str]:
    """Those that `extend_schema(parameters=...)` or the kind of description names."""
    described = getattr(getattr(view, method.lower()), "kwargs", {}).get("schema")
    schema: AutoSchema = described() if described else view.schema
    schema.view, schema.method = view, method
    return {
        each.name
        for each in schema.get_override_parameters()
        if isinstance(each, OpenApiParameter) and each.location == OpenApiParameter.QUERY
    }


def _of_a_list(view: Any, method: str) -> set[str]:
    paginator, filters = getattr(view, "paginator", None), getattr(view, "filterset_class", None)
    if paginator is None or method not in {"GET", "HEAD"}:
        return set()
    pages = {paginator.cursor_query_param, paginator.page_size_query_param}
    return pages | set(filters.base_filters if filters else ())
