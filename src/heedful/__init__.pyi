from heedful.runs import load as load
from heedful.runs import resume as resume
from heedful.runs import train as train

__all__ = ["load", "resume", "train"]
