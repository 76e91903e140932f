"""Echelon: two teams of mechs fight for a zone on a battlefield of voxels that breaks."""
