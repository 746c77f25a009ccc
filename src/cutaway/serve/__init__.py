"""What Cutaway offers over HTTP: the explorer in the browser. Needs the extra `serve` (FastAPI and uvicorn)."""
