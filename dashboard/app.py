"""The web application: pages for people, ``/api/v1`` for programs, both on the store and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from controller.store import Store, StoreError
from dashboard import api, api_learning, figures, view
from dashboard.pages import decisions, forecasts, learning, nodes, overview, teams

HERE = Path(__file__).parent
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1", "testserver")
HEADERS = {
    # Plotly sets styles on its elements; scripts come from us alone and never from a page's text.
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}


def create_app(store: Store, *, title: str = "tidegate", hosts: tuple[str, ...] = ()) -> FastAPI:
    """Build the application. ``hosts``: host names it answers to beside the local ones (against DNS rebinding)."""
    app = FastAPI(
        title=title,
        version=version("tidegate"),
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.store = store
    app.state.recorded = {}
    app.state.templates = _templates(title)
    app.add_middleware(GZipMiddleware, minimum_size=1024)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOCAL_HOSTS, *hosts])
    app.middleware("http")(_secured)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    for page in (overview, forecasts, learning, teams, decisions, nodes):
        app.include_router(page.router)
    app.include_router(api.router)
    app.include_router(api_learning.router)
    _plain_routes(app)
    _errors(app)
    return app


def _templates(title: str) -> Jinja2Templates:
    templates = Jinja2Templates(directory=HERE / "templates")
    templates.env.globals.update(
        title=title, version=version("tidegate"), view=view, plotly_version=figures.plotly_version(), kinds=view.KINDS
    )
    templates.env.trim_blocks = templates.env.lstrip_blocks = True
    return templates


async def _secured(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if not request.url.path.startswith("/static"):
        response.headers.setdefault("Cache-Control", "no-store")
    return response


def _plain_routes(app: FastAPI) -> None:
    @app.get("/static-plotly/plotly.min.js", include_in_schema=False)
    def plotly_js() -> FileResponse:
        forever = {"Cache-Control": "public, max-age=31536000, immutable"}
        return FileResponse(figures.plotly_js(), media_type="text/javascript", headers=forever)

    @app.get("/healthz", tags=["health"])
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["health"])
    def readyz() -> JSONResponse:
        """The store answers."""
        try:
            app.state.store.clusters()
        except StoreError as error:
            return JSONResponse({"status": "store unavailable", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok"})


def _errors(app: FastAPI) -> None:
    def answer(request: Request, status: int, message: str) -> Response:
        if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"detail": message}, status)
        templates: Jinja2Templates = app.state.templates
        return templates.TemplateResponse(request, "error.html", {"status": status, "message": message}, status)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return answer(request, 422, f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return answer(request, 500, "tidegate could not answer this: a fault of ours, its log says which")

    @app.exception_handler(StoreError)
    async def unavailable(request: Request, error: StoreError) -> Response:
        return answer(request, 503, f"the store does not answer: {error}")
