"""Spectra of kernels: eigensystems on discrete spaces and spheres, and what regression learns of each mode."""
