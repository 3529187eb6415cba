"""Tells lm-evaluation-harness of the model `lancet` once it is imported. Read at every start of Python (lancet_lm_eval.pth), so it
imports nothing itself: the harness has a table of models and no other way for a package to stand in it."""

import sys


class _Finder:
    """Lets the harness's own table be made, then adds a row, which is imported where it is asked for."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "lm_eval.models":
            return None
        sys.meta_path.remove(_Finder)
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        make = spec.loader.exec_module

        def exec_module(module):
            make(module)
            from lm_eval.api.registry import model_registry

            if "lancet" not in model_registry:
                model_registry.register("lancet", target="lancet.lm_eval:LancetLM")

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Finder)
