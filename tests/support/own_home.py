"""A home folder of the tests' own: what a user's has (statistics that lancet cached, Hugging Face's caches, settings) must not decide what
they find, and nothing is asked of a hub."""

ELSEWHERE = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE")  # in place of a folder below the home
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def at_home(environment, folder):
    kept = {name: value for name, value in environment.items() if name not in ELSEWHERE}
    return {**kept, **OFFLINE, "HOME": str(folder)}
