"""How a trial was conducted: where it left its plan, and what second raters are to judge."""
