"""The closed-form end of training against direct simulation of the coupled updates and of a model's parameters."""

from __future__ import annotations

import numpy as np
import pytest
from toy_network import ToyNetwork, coupled_updates

from numeric.trained.algorithms import (
    DivergentTraining,
    GradientDescent,
    GradientFlow,
    Momentum,
    Newton,
    Preconditioned,
    Schedule,
    TwoStep,
)
from numeric.trained.dynamics import InModes, NetworkTensors, TrainingDynamics


@pytest.fixture(scope="module")
def toy() -> ToyNetwork:
    return ToyNetwork()


def dynamics(toy, algorithm, network=None) -> TrainingDynamics:
    return TrainingDynamics(network or toy.tensors(), toy.mean_ntk, toy.y, toy.train, algorithm)


def largest(toy) -> float:
    return np.linalg.eigvalsh(toy.mean_ntk[np.ix_(toy.train, toy.train)])[-1]


@pytest.mark.equation("infinity.81")
@pytest.mark.equation("infinity.82")
@pytest.mark.equation("infinity.83")
@pytest.mark.equation("infinity.130")
@pytest.mark.equation("infinity.141")
@pytest.mark.parametrize("fraction", [0.3, 0.9, 1.6])
def test_gradient_descent_end_state_is_the_closed_form(toy, fraction):
    eta = fraction / largest(toy)
    (zeroth, first), _, _ = coupled_updates(toy.tensors(), toy.y, toy.train, eta, 700)
    d = dynamics(toy, GradientDescent(eta))
    assert np.abs(zeroth - d.free()).max() < 1e-10
    assert np.abs(first - d.interacting()).max() < 1e-10 * np.abs(first).max()
    assert np.abs(first).max() > 0.1


@pytest.mark.equation("infinity.101")
@pytest.mark.equation("infinity.102")
@pytest.mark.equation("infinity.105")
@pytest.mark.equation("infinity.117")
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 40])
def test_ntk_and_dntk_in_time(toy, steps):
    eta = 0.7 / largest(toy)
    _, (_, change), dntk = coupled_updates(toy.tensors(), toy.y, toy.train, eta, steps)
    d = dynamics(toy, GradientDescent(eta))
    assert np.abs(change - d.ntk_change(steps)).max() < 1e-11
    assert np.abs(dntk - d.dntk(steps)).max() < 1e-11


@pytest.mark.equation("infinity.119")
@pytest.mark.equation("infinity.121")
@pytest.mark.equation("infinity.122")
@pytest.mark.equation("infinity.124")
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_the_damping_force_summed_over_steps_is_the_interacting_output(toy, steps):
    """The force from our NTK and dNTK in time, put into the printed sums; the output from the coupled updates."""
    eta, t, net = 0.7 / largest(toy), toy.train, toy.tensors()
    d = dynamics(toy, GradientDescent(eta))
    H, trained = toy.mean_ntk, toy.mean_ntk[np.ix_(toy.train, toy.train)]
    forces, errors = [], net.z[:, t] - toy.y.T
    for s in range(steps):
        force = -np.einsum("ijda,ja->id", d.ntk_change(s)[..., t], errors)
        force += eta / 2 * np.einsum("ijkdab,ja,kb->id", d.dntk(s)[..., t, :][..., t], errors, errors)
        cubic = net.ddI[..., t, :, :][..., t, :][..., t]
        forces.append(force - eta**2 / 6 * np.einsum("ijkldabc,ja,kb,lc->id", cubic, errors, errors, errors))
        errors = errors - eta * errors @ trained
    outputs = [coupled_updates(net, toy.y, t, eta, s)[0][1] for s in range(steps + 1)]
    evolve = [np.linalg.matrix_power(np.eye(len(t)) - eta * trained, s) for s in range(steps)]
    on_training = eta * sum(forces[s][:, t] @ evolve[steps - 1 - s] for s in range(steps))
    anywhere = eta * sum(forces[s] - outputs[s][:, t] @ H[t] for s in range(steps))
    weights = np.linalg.solve(trained, H[t])
    summed = eta * sum(f - f[:, t] @ weights for f in forces) + outputs[-1][:, t] @ weights
    scale = 1e-11 * np.abs(outputs[-1]).max()
    assert np.abs(on_training - outputs[-1][:, t]).max() < scale
    assert np.abs(anywhere - outputs[-1]).max() < scale
    assert np.abs(summed - outputs[-1]).max() < scale


ALGORITHMS = {
    "gradient descent": (lambda top: GradientDescent(0.8 / top), 400),
    "momentum": (lambda top: Momentum(0.4 / top, 0.6), 600),
    "overshooting momentum": (lambda top: Momentum(1.1 / top, 0.8), 900),
    "Nesterov": (lambda top: Momentum(0.3 / top, 0.5, nesterov=True), 900),
    "schedule": (lambda top: Schedule([1.5 / top, 0.1 / top, 0.9 / top, 0.4 / top]), 900),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_projectors_follow_from_the_update_rule(toy, name):
    """Training the parameters of the toy model with `update` itself: nothing shared with the projectors' algebra."""
    make, steps = ALGORITHMS[name]
    algorithm = make(largest(toy))
    zeroth, first = toy.train_parameters(algorithm, steps)
    d = dynamics(toy, algorithm)
    assert np.abs(zeroth - d.free()).max() < 1e-10
    assert np.abs(first - d.interacting()).max() < 1e-10 * np.abs(first).max()


@pytest.mark.equation("infinity.57")
@pytest.mark.equation("infinity.79")
@pytest.mark.equation("infinity.148")
@pytest.mark.parametrize("algorithm", [TwoStep(), Newton()])
def test_two_steps(toy, algorithm):
    inverse = np.linalg.inv(toy.mean_ntk[np.ix_(toy.train, toy.train)])
    zeroth, first = toy.train_parameters(algorithm, 2, newton=inverse)
    d = dynamics(toy, algorithm)
    assert np.abs(zeroth - d.free()).max() < 1e-10
    assert np.abs(first - d.interacting()).max() < 1e-10 * np.abs(first).max()
    parts = d.force_parts()
    assert all(np.abs(parts[name]).max() < 1e-14 for name in ("Z_A", "Z_IA", "Z_IIA", "Z_IIB"))
    assert all(np.abs(parts[name]).max() > 1e-3 for name in ("Z_B", "Z_IB"))


def test_generalized_mse_with_a_newton_tensor(toy):
    """A Newton tensor κ = H̃^(1/2): gradient descent on the generalized MSE loss (10.22)."""
    block = toy.mean_ntk[np.ix_(toy.train, toy.train)]
    h, U = np.linalg.eigh(block)
    eta = 0.5 / h[-1] ** 1.5
    algorithm = Preconditioned(eta, np.sqrt)
    zeroth, first = toy.train_parameters(algorithm, 900, newton=(U * np.sqrt(h)) @ U.T)
    d = dynamics(toy, algorithm)
    assert np.abs(zeroth - d.free()).max() < 1e-10
    assert np.abs(first - d.interacting()).max() < 1e-10 * np.abs(first).max()


@pytest.mark.equation("infinity.149")
@pytest.mark.equation("infinity.150")
@pytest.mark.equation("infinity.151")
@pytest.mark.parametrize("when", [0.0, 0.8, None])
def test_gradient_flow(toy, when):
    """The ODE limit of the coupled updates, integrated at high order."""
    from scipy.integrate import solve_ivp

    net, t, n = toy.tensors(), toy.train, toy.outputs
    shapes = [net.z.shape, net.z.shape, net.H.shape, net.dH.shape]
    cuts = np.cumsum([np.prod(s) for s in shapes])[:-1]

    def unpack(x):
        return [part.reshape(shape) for part, shape in zip(np.split(x, cuts), shapes)]

    def rate(_, x):
        z, z1, H1, dH = unpack(x)
        err = z[:, t] - toy.y.T
        first = np.einsum("ijkdea,ka->ijde", dH[..., t], err)
        one = np.einsum("ijkldefa,la->ijkdef", net.ddI[..., t], err)
        two = np.einsum("ijkldefa,la->ijkdef", net.ddII[..., t], err)
        rates = [
            -np.einsum("ijda,ja->id", net.H[..., t], err),
            -np.einsum("ijda,ja->id", net.H[..., t], z1[:, t]) - np.einsum("ijda,ja->id", H1[..., t], err),
            -(first + first.transpose(1, 0, 3, 2)),
            -(one + two + two.transpose(0, 2, 1, 3, 5, 4)),
        ]
        return np.concatenate([r.ravel() for r in rates])

    start = np.concatenate([net.z.ravel(), np.zeros(net.z.size + net.H.size), net.dH.ravel()])
    smallest = np.linalg.eigvalsh(toy.mean_ntk[np.ix_(t, t)])[0]
    end = 35 / smallest if when is None else when
    solution = solve_ivp(rate, (0, end), start, method="DOP853", rtol=1e-12, atol=1e-13)
    z, z1, H1, dH = unpack(solution.y[:, -1])
    d = dynamics(toy, GradientFlow())
    assert np.abs(H1 - d.ntk_change(when)).max() < 1e-10
    assert np.abs(dH - d.dntk(when)).max() < 1e-10
    assert np.abs(z - d.free(when)).max() < 1e-10
    assert np.abs(z1 - d.interacting(when)).max() < 1e-10
    assert n == 2


@pytest.mark.equation("infinity.71")
@pytest.mark.equation("infinity.93")
@pytest.mark.equation("infinity.154")
def test_fluctuating_ntk_decides_the_signs(toy):
    """Free training with H = mean + e ΔH, order by order in e; the printed signs of the ΔH lines come out opposite."""
    rng = np.random.default_rng(5)
    net, t, eta = toy.tensors(), toy.train, 0.9 / largest(toy)
    noise = rng.normal(size=net.H.shape)
    noise = (noise + noise.transpose(1, 0, 3, 2)) / 20
    orders = [net.z.copy(), np.zeros_like(net.z), np.zeros_like(net.z)]
    for _ in range(700):
        errors = [orders[0][:, t] - toy.y.T, orders[1][:, t], orders[2][:, t]]
        mean = [e @ toy.mean_ntk[:, t].T for e in errors]
        kicked = [np.einsum("ijda,ja->id", noise[..., t], e) for e in errors]
        orders = [
            orders[0] - eta * mean[0],
            orders[1] - eta * (mean[1] + kicked[0]),
            orders[2] - eta * (mean[2] + kicked[1]),
        ]
    noisy = NetworkTensors(net.z, net.H + noise, net.dH, net.ddI, net.ddII)
    expanded = dynamics(toy, GradientDescent(eta), noisy).expanded_free()
    for simulated, closed in zip(orders, expanded):
        assert np.abs(simulated - closed).max() < 1e-10
    printed = -expanded[1]
    assert np.abs(orders[1] - printed).max() > 0.1
    assert np.abs(orders[2] + expanded[2]).max() > 0.01


@pytest.mark.equation("infinity.155")
@pytest.mark.equation("infinity.158")
@pytest.mark.equation("infinity.159")
def test_trained_ntk_predicts_the_trained_network(toy):
    """The kernel prediction with H♯ differs from the solution only at second order in the differentials."""
    net, gaps = toy.tensors(), []
    for size in (1e-3, 5e-4):
        small = NetworkTensors(net.z, net.H, size * net.dH, size * net.ddI, size * net.ddII)
        d = dynamics(toy, GradientDescent(0.9 / largest(toy)), small)
        H = d.trained_ntk().transpose(0, 2, 1, 3)
        n = toy.outputs * len(toy.train)
        block = H[:, toy.train].reshape(n, n)
        e = (net.z[:, toy.train] - toy.y.T).reshape(-1)
        kernel = net.z - H.reshape(toy.outputs, toy.samples, n) @ np.linalg.solve(block, e)
        gaps.append(np.abs(kernel - d.output()).max())
    assert gaps[0] < 1e-4
    assert gaps[1] / gaps[0] == pytest.approx(0.25, rel=0.05)


@pytest.mark.equation("infinity.155")
def test_trained_ntk_of_three_training_inputs():
    """At first order: what H♯ changes, acting on the solution of the mean NTK, is the differentials' output."""
    toy = ToyNetwork(outputs=2, samples=5, n_train=3, parameters=5, seed=4)
    d, t = dynamics(toy, GradientDescent(0.9 / largest(toy))), toy.train
    inverse = np.linalg.inv(toy.mean_ntk[np.ix_(t, t)])
    piled = (toy.z0[:, t] - toy.y.T) @ inverse
    change = -np.einsum("ijda,ja->id", d.trained_ntk() - toy.tensors().H[..., t], piled)
    response = change - change[:, t] @ inverse @ toy.mean_ntk[t]
    assert np.abs(response - d.interacting()).max() < 1e-11 * np.abs(response).max()
    assert np.abs(response[:, 3:]).max() > 0.01


def test_tensors_in_modes_keep_the_external_slots(toy):
    """The modes of the training inputs in some slots, all inputs in the others; a slot's place stays."""
    net, modes = toy.tensors(), np.linalg.eigh(toy.mean_ntk[:2, :2])[1]
    U = np.concatenate([modes, np.zeros((2, 2))])
    turned = InModes(net, U)
    assert turned.H(0) == pytest.approx(np.einsum("ijab,bm->ijam", net.H, U))
    assert turned.H(1) == pytest.approx(np.einsum("ijab,am->ijmb", net.H, U))
    assert turned.dH(1) == pytest.approx(np.einsum("ijkabc,am,cn->ijkmbn", net.dH, U, U))
    assert turned.dH(0, 2) == pytest.approx(np.einsum("ijkabc,bm->ijkamc", net.dH, U))
    assert np.array_equal(turned.ddI(0, 1, 2, 3), net.ddI)


@pytest.mark.equation("infinity.66")
@pytest.mark.equation("infinity.126")
@pytest.mark.equation("infinity.129")
def test_training_inputs_end_on_their_targets(toy):
    for algorithm in (
        GradientDescent(0.5 / largest(toy)),
        GradientFlow(),
        TwoStep(),
        Momentum(0.4 / largest(toy), 0.6),
    ):
        output = dynamics(toy, algorithm).output()
        assert np.abs(output[:, toy.train] - toy.y.T).max() < 1e-12


def test_too_large_a_learning_rate_is_refused(toy):
    with pytest.raises(DivergentTraining, match="take a learning rate below"):
        dynamics(toy, GradientDescent(2.01 / largest(toy))).output()


@pytest.mark.equation("infinity.91")
@pytest.mark.equation("infinity.121")
@pytest.mark.equation("infinity.122")
@pytest.mark.equation("infinity.124")
@pytest.mark.parametrize("steps", [0, 1, 2, 9, 60])
@pytest.mark.parametrize("fraction", [0.4, 1.5])
def test_output_after_any_number_of_steps(toy, steps, fraction):
    """z(t), H(t), dH(t) of the product against iterating the coupled updates."""
    eta = fraction / largest(toy)
    (zeroth, first), (_, change), dntk = coupled_updates(toy.tensors(), toy.y, toy.train, eta, steps)
    d = dynamics(toy, GradientDescent(eta))
    assert np.abs(zeroth - d.free(steps)).max() < 1e-12
    assert np.abs(first - d.interacting(steps)).max() < 1e-12
    assert np.abs(zeroth + first - d.output(steps)).max() < 1e-12
    assert np.abs(toy.tensors().H + change - d.ntk(steps)).max() < 1e-12
    assert np.abs(dntk - d.dntk(steps)).max() < 1e-12


@pytest.mark.parametrize("steps", [1, 3, 20])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_in_time(toy, name, steps):
    """The parameters of the toy model, trained with `update` itself."""
    algorithm = ALGORITHMS[name][0](largest(toy))
    zeroth, first = toy.train_parameters(algorithm, steps)
    d = dynamics(toy, algorithm)
    assert np.abs(zeroth - d.free(steps)).max() < 1e-12
    assert np.abs(first - d.interacting(steps)).max() < 1e-12
    assert np.abs(first).max() > 1e-2


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_newton_tensors_in_time(toy, steps):
    h, U = np.linalg.eigh(toy.mean_ntk[np.ix_(toy.train, toy.train)])
    for algorithm, kappa in ((Preconditioned(0.5 / h[-1] ** 1.5, np.sqrt), np.sqrt(h)), (Newton(), 1 / h)):
        zeroth, first = toy.train_parameters(algorithm, steps, newton=(U * kappa) @ U.T)
        d = dynamics(toy, algorithm)
        assert np.abs(zeroth - d.free(steps)).max() < 1e-12
        assert np.abs(first - d.interacting(steps)).max() < 1e-12


@pytest.mark.equation("infinity.91")
@pytest.mark.parametrize("name", ["gradient descent", "momentum", "schedule", "Newton"])
def test_free_training_with_an_ntk_of_its_own(toy, name):
    """Outputs in time when the network's NTK differs from the mean and the Newton tensor is that of the mean."""
    net, t = toy.tensors(), toy.train
    noise = np.random.default_rng(2).normal(size=net.H.shape) / 50
    H = net.H + noise + noise.transpose(1, 0, 3, 2)
    algorithm = Newton() if name == "Newton" else ALGORITHMS[name][0](largest(toy))
    kappa = np.linalg.inv(toy.mean_ntk[np.ix_(t, t)]) if name == "Newton" else np.eye(len(t))
    z, memory = net.z.copy(), (np.zeros((toy.outputs, len(t))),) * algorithm.memory_size
    d = dynamics(toy, algorithm, NetworkTensors(net.z, H, net.dH, net.ddI, net.ddII))
    for step in range(7):
        assert np.abs(z - d.free(step)).max() < 1e-12
        memory, moved = algorithm.update(memory, (z[:, t] - toy.y.T) @ kappa, step)
        z = z - np.einsum("ijda,ja->id", H[..., t], moved)


@pytest.mark.equation("infinity.105")
def test_the_difference_equation_of_the_ntk(toy):
    """Every step of the NTK: six terms in the second-order bracket; the five that are printed fail (docs/errata)."""
    eta, t, net = 0.7 / largest(toy), toy.train, toy.tensors()
    trained = toy.mean_ntk[np.ix_(t, t)]
    start = net.z[:, t] - toy.y.T
    cut = {name: getattr(net, name)[..., t] for name in ("dH", "ddI", "ddII")}
    I, II = cut["ddI"][..., t, :], cut["ddII"][..., t, :]
    mixed = cut["ddII"][..., t, :, :]  # samples 1, a, 2, b
    errors = start
    for step in range(4):
        piled = np.linalg.solve(trained, (start - errors).T).T
        now = coupled_updates(net, toy.y, t, eta, step)[1][1]
        after = coupled_updates(net, toy.y, t, eta, step + 1)[1][1]

        def pairs(x, y, errors=errors):
            one = np.einsum("ijklxyab,ka,lb->ijxy", I, x, y)
            two = np.einsum("ijklxyab,ka,lb->ijxy", II, x, y)
            across = np.einsum("ikjlxayb,ka,lb->ijxy", mixed, x, y)
            return one, two, across

        def back(x):
            return x.transpose(1, 0, 3, 2)

        first = np.einsum("ijkxya,ka->ijxy", cut["dH"], errors)
        one, two, across = pairs(errors, piled)
        late, later, _ = pairs(errors, errors)
        last = eta**2 / 2 * (late + back(late) + 2 * later)
        right = one + two + across + back(one + two + across)
        printed = one + 2 * two + back(two) + back(across)
        assert np.abs(after - now + eta * (first + back(first)) - eta * right - last).max() < 1e-12
        if step:
            assert np.abs(eta * (right - printed)).max() > 1e-4
        errors = errors - eta * errors @ trained
