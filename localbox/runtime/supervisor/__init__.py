"""The program that owns the processes of one box: one small detached process per box.

Everything in here is imported by `python -I -S` and stays in memory once per box, so it uses the small modules of
the standard library only: no dataclasses, typing, subprocess, pathlib or asyncio.
"""
