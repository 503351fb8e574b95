"""Texts of the suite's own making: formulas from a grammar, the same with damage, and everything else users type."""

from __future__ import annotations

import random

from hypothesis import strategies as st

FUNCTIONS = [
    *("exp", "log", "ln", "sqrt", "sin", "cos", "tanh", "sinh", "cosh", "sech", "erf", "erfc", "atan", "arctan"),
    *("asinh", "arcsinh", "abs", "sign", "relu", "sigmoid", "softplus"),
]
NUMBERS = ["0", "1", "2", "3", "0.5", "1/3", "pi", "E", "1e-3", "7", "10", "1e10", "1e-30", "0.1", "64", "1e99", "1_0"]
ODD = [*"#\"'\\`$%&;:!?@[]{}~|\n\t\r\x00\x1b\u2028é÷−", "**", "//", "==", "__", "lambda", "import os", "z z", ""]


def formula(choose: random.Random, depth: int = 4) -> str:
    """A formula of the whitelist's own grammar; most have a meaning."""
    if depth == 0 or choose.random() < 0.22:
        return choose.choice(["z", "z", "z", "z", choose.choice(NUMBERS), "-z"])
    kind = choose.random()
    if kind < 0.38:
        return f"{choose.choice(FUNCTIONS)}({formula(choose, depth - 1)})"
    if kind < 0.72:
        operator = choose.choice(["+", "-", "*", "/", "+", "*"])
        return f"({formula(choose, depth - 1)}){operator}({formula(choose, depth - 1)})"
    if kind < 0.84:
        power = choose.choice(["2", "3", "-1", "1/2", "-2", "5", "3/2", "7", "31", "0"])
        return f"({formula(choose, depth - 1)})^({power})"
    if kind < 0.93:
        return f"{choose.choice(['max', 'min'])}({formula(choose, depth - 1)},{formula(choose, depth - 1)})"
    relation = choose.choice(["<", ">", "<=", ">="])
    parts = [formula(choose, depth - 1) for _ in range(3)]
    return f"where({parts[0]}{relation}0,{parts[1]},{parts[2]})"


def damaged(choose: random.Random, text: str) -> str:
    """The text with one letter or word changed, dropped, doubled or put in."""
    place = choose.randrange(len(text) + 1)
    match choose.randrange(4):
        case 0:
            return text[:place] + choose.choice(ODD) + text[place:]
        case 1:
            return text[:place] + text[place + 1 :]
        case 2:
            return text[:place] + text[place : place + 3] * 2 + text[place + 3 :]
        case _:
            return text[:place] + choose.choice("z()+-*/^.,<>=0123456789eE") + text[place + 1 :]


def formulas(seed: int, count: int) -> list[str]:
    """Three of four from the grammar, one of four with damage."""
    choose = random.Random(seed)
    found = []
    for k in range(count):
        text = formula(choose, choose.choice([1, 2, 3, 3, 4]))
        found.append(damaged(choose, text) if k % 4 == 3 else text)
    return found


NUMBER_TEXTS = [
    *(
        "0",
        "1",
        "0.5",
        "-1",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "1e-400",
        "1/0",
        "2/3",
        "sqrt(2)",
        "z",
        "x",
        "",
        " ",
        "0x10",
    ),
    *("1e99999999", "9" * 60, "١", "½", "1,2", "True", "None", "--", "1e3", "1e10", "#", "'", "\x00", "\n1", "1_000"),
]
ACTIVATIONS = [
    *("tanh", "relu", "gelu", "exp", "linear", "leaky_relu(slope=0.2)", "monomial(k=3)", "z+1", "z*tanh(z)", "sin(z)"),
    *(
        "tanhh",
        "",
        "1/0",
        "z**z",
        "abs(z)",
        "sign(z)",
        "exp(z^2)",
        "leaky_relu(slope=nan)",
        "monomial(k=1e9)",
        "2z",
        "z#",
    ),
]
PATTERNS = [
    "s0 s0",
    "s0' s0'",
    "s0 s1",
    "s0**0",
    "s0**99",
    "z0",
    "s0'''''''''''''''",
    "",
    "<s0>",
    "s100",
    "s0^(500)",
    "x",
]
TENSORS = ["K", "Theta", "V", "R", "Z", "", "k", "K;", "\x00"]
COUNTS = ["0", "1", "2", "3", "-1", "1000000000000", "2.5", "nan", "", "x", "1,2", "1e3"]
LEARNING_RATES = [
    "equivalence",
    "constant",
    "power(1,0)",
    "power(1/0,1)",
    "power(1e99999999,0)",
    "power(a,b)",
    "power(",
    "",
]
RIGHT = {
    *(
        "0",
        "1",
        "0.5",
        "2/3",
        "2",
        "3",
        "4",
        "8",
        "1,2",
        "tanh",
        "relu",
        "gelu",
        "linear",
        "leaky_relu(slope=0.2)",
        "K",
    ),
    *("z*tanh(z)", "monomial(k=3)", "s0 s0", "s0' s0'", "Theta", "V", "R", "equivalence", "constant", "power(1,0)"),
    *(
        "z",
        "H",
        "dH",
        "mlp",
        "residual",
        "input-skip",
        "y",
        "x",
        "flow",
        "descent",
        "momentum",
        "mse",
        "torch",
        "keras",
    ),
    *("hypercube", "circle", "loo", "gcv", "0,1;2", "0.1,0.05", "30", "z^3", "json"),
}
"""Values that are right where they are offered."""
BATCHES = ["0,1;2", "0", "", ";", "x", "-1", "0,99", "0,0", "1e3", "0;1;2;0,1,2"]


def command_lines(seed: int, count: int, files: dict[str, str]) -> list[list[str]]:
    """Command lines of all commands, with values that are right, wrong or absurd; right ones are small questions."""
    choose = random.Random(seed)
    data = [path for name, path in files.items() if name not in ("out", "study", "csv", "png")]
    places = ["", "/proc/x", "x" * 400, files["folder"] + "/good.csv/x", "/dev/null/x", "a\x00b"]

    calm = False

    def pick(texts: list[str] | tuple[str, ...]) -> str:
        right = [text for text in texts if text in RIGHT] if calm and choose.random() < 0.9 else []
        return choose.choice(right or texts)

    def options(**values: list[str]) -> list[str]:
        words: list[str] = []
        for name, texts in values.items():
            if choose.random() < 0.45:
                words += ["--" + name.replace("_", "-"), pick(texts)]
        return words

    def one() -> list[str]:
        nonlocal calm
        calm = choose.random() < 0.6  # then most values are right, so that the wrong one is met deep inside
        kind = choose.choice(
            (
                *("criticality", "criticality", "expect", "expect", "forward", "recursion", "exponents", "asymptotics"),
                *("generalization", "starpolation", "generate", "predict", "predict", "depth-study", "learnability"),
                *("ntk-study", "activations", "strange", "recommend", "recommend", "certify", "scale-study", "report"),
                *("kernel", "kernel", "projectors", "projectors", "explore"),
            )
        )
        sigma = pick(ACTIVATIONS) if choose.random() < (0.95 if calm else 0.6) else damaged(choose, formula(choose, 2))
        numbers = NUMBER_TEXTS
        match kind:
            case "criticality":
                return [kind, sigma, *options(C_b=numbers, C_W=numbers, layer=["residual", "x"], skip=numbers)]
            case "expect":
                certify = ["--certify"] * (choose.random() < 0.2)
                return [kind, pick(PATTERNS), sigma, *options(K=numbers, digits=[*COUNTS, "30"]), *certify]
            case "forward":
                return [kind, pick(["z", "H", "dH", "ddI", "ddII", "Q", ""]), *options(layer=["mlp", "residual", "x"])]
            case "recursion":
                return [kind, pick(TENSORS), *options(layer=["mlp", "input-skip", "x"])]
            case "exponents":
                rates = options(learning_rates=LEARNING_RATES, lambda_b=numbers, point=COUNTS, C_b=numbers)
                return [kind, pick(["tanh", "relu", "generic", "tanhh", "z+1"]), *rates]
            case "asymptotics":
                rates = options(learning_rates=LEARNING_RATES, lambda_W=numbers, order=["1", "0", "7", "-1", "x"])
                return [kind, pick(["tanh", "relu", "tanhh"]), pick(TENSORS), *rates]
            case "generalization" | "starpolation":
                return [kind, pick(["tanh", "relu", "exp", "q"]), *options(learning_rates=LEARNING_RATES, point=COUNTS)]
            case "generate":
                alone = ["--standalone"] * (choose.random() < 0.3)
                return [kind, sigma, "-o", pick([files["out"], *places]), *options(tensors=TENSORS), *alone]
            case "predict" | "depth-study":
                tables = [files["good"], files["test"]] if calm else data
                target = pick(["y", "x", "", "[red]", "q"])
                words = [kind, pick(tables), "--test", pick(tables), "--target", target]
                if kind == "predict":
                    words += ["--infinite"]
                    words += options(depth=COUNTS[:6], C_b=numbers, C_W=numbers, lambda_b=numbers, rcond=numbers)
                    algorithms = ["flow", "descent", "momentum", "schedule", "stochastic", "newton", "x"]
                    words += options(eta=[*numbers, "0.1,0.05"], momentum=numbers, algorithm=algorithms)
                    words += options(batches=BATCHES, time=[*numbers, "1,2", "-1", "1e9"])
                    words += ["--loss"] * (choose.random() < 0.2)
                    words += options(output=[*places, files["csv"]], plot=[*places, files["png"]])
                    if choose.random() < 0.2:  # refused before anything is drawn
                        words += ["--method", pick(["sampled", "auto", "exact", "x"]), "--seconds", pick(numbers)]
                        words += options(checkpoint=[*places, *data], seed=COUNTS, relative_error=numbers)
                    return [*words, *options(activation=["tanh", "relu", "q", "z#"], width=COUNTS)]
                words += options(depths=[*COUNTS, "1,2", "2,x"], rcond=numbers, loss=["mse", "x"])
                return [*words, *options(activations=["tanh", "relu,tanh", "q", ""])]
            case "kernel":
                tables = [files["good"], files["test"]] if calm else data
                words = [kind, pick(tables), "--target", pick(["y", "y", "x", "", "[red]"])]
                words += options(test=tables, candidates=tables, depth=COUNTS[:6], kernel=["Theta", "K", "x"])
                words += options(C_b=numbers, C_W=numbers, lambda_b=numbers, ridge=[*numbers, "loo", "gcv"])
                words += options(landmarks=COUNTS, seed=COUNTS, memory=numbers, output=[*places, files["csv"]])
                return [*words, *options(activation=["tanh", "relu", "q", "z#"], plot=[*places, files["png"]])]
            case "projectors":
                algorithms = ["flow", "descent", "momentum", "nesterov", "schedule", "newton", "two-step", "x"]
                words = [kind, *options(algorithm=algorithms, eta=[*numbers, "0.1,0.05"], momentum=numbers)]
                spectra = [
                    "1",
                    "0.5,1",
                    "0",
                    "-1",
                    "nan",
                    "1e400",
                    "",
                    ",",
                    "1,1,1,1,1,1,1,1,1,1,1,1,1,1",
                    "1e-300,1e300",
                ]
                return [*words, *options(eigenvalues=spectra, time=[*numbers, "7"], plot=[*places, files["png"]])]
            case "explore":  # never one that is right: it would serve
                wrong = [["--port", pick(["0", "-1", "99999", "x", ""])], ["--static", pick(places)], ["--x"]]
                return [kind, *([sigma] if choose.random() < 0.5 else []), *choose.choice(wrong)]
            case "learnability":
                words = [kind, pick(["tanh", "relu", "q"]), "--dimension", pick(["2", "3", "0", "-1", "99", "x"])]
                words += options(depth=COUNTS[:5], samples=[*COUNTS, "1,2"], ridge=numbers, trials=["2", "-1", "x"])
                return [*words, *options(space=["circle", "hypercube", "x"], C_b=numbers, seed=["-1", "0", "x"])]
            case "ntk-study":
                bad = [["--widths", pick(["", "2", "x", "-1,2", "0,1", "nan"])], ["--seed", "-1"], ["--rate", "nan"]]
                return [kind, "tanh", "-o", files["study"], *choose.choice(bad), *options(steps=["0", "-5", "7", "x"])]
            case "recommend":
                words = [kind, sigma, "--depth", pick([*COUNTS, "4", "4", "8", "8"])]
                words += options(width=COUNTS, outputs=COUNTS, input_norm=numbers, inputs=COUNTS, targets=numbers)
                words += options(data=data[:4]) if choose.random() < 0.2 else []
                return [*words, *options(s=numbers, point=COUNTS, format=["torch", "flax", "keras", "json", "", "$x"])]
            case "certify":
                return [kind, pick(["tanh", "relu", "linear", "z^3", "q", "", "1/0"]), *options(digits=COUNTS)]
            case "scale-study":
                bad = [["--widths", pick(["", "1", "x", "-1,2", "nan", "1e9"])], ["--seed", "-1"], ["--powers", "x"]]
                bad += [["--s", pick(["2", "nan", "x", ""])], ["--networks", pick(["-2", "3", "0"])], ["--steps", "-1"]]
                return [kind, sigma, "-o", pick([files["study"], *places]), *choose.choice(bad)]
            case "report":
                return [kind, sigma, "-o", pick(places)]
            case "activations":
                return [kind, *options(nothing=["1"])]
        return [damaged(choose, pick(["criticality", "--help", "expect", "-h"])), sigma, damaged(choose, "--json")]

    return [one() for _ in range(count)]


any_text = st.text(
    alphabet=st.one_of(
        st.sampled_from("z0129.+-*/^() ,eExpsintahlogqr_'\"[]{}:=<>!@#%&\\$`"), st.characters(codec="utf-8")
    ),
    max_size=80,
)
"""Any text at all, with the letters of formulas more often."""
