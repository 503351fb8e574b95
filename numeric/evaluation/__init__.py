"""The flow evaluated: inputs checked, brackets tabulated, layer steps compiled and run, memory and error counted."""
