"""Deep Q-learning balances a pole on a cart (Barto, Sutton and Anderson 1983), without a library of games: python dqn.py [EPISODES]."""
import math
import random
import sys

import weber as wb


class Cart:
    """The cart and pole of Barto, Sutton and Anderson; 200 steps at most."""

    def reset(self):
        self.state, self.steps = [random.uniform(-0.05, 0.05) for _ in range(4)], 0
        return list(self.state)

    def step(self, action):
        x, v, angle, w = self.state
        force = 10.0 if action else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        pull = (force + 0.05 * w * w * sine) / 1.1
        turn = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine ** 2 / 1.1))
        self.state = [x + 0.02 * v, v + 0.02 * (pull - 0.05 * turn * cosine / 1.1), angle + 0.02 * w, w + 0.02 * turn]
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return list(self.state), 0.0 if fell else 1.0, fell, fell or self.steps >= 200


def main():
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    random.seed(1)
    wb.seed(1)
    model = wb.Chain(wb.Dense(4, 64, wb.relu), wb.Dense(64, 64, wb.relu), wb.Dense(64, 2))
    target = model.clone()
    optimiser = wb.setup(wb.Adam(1e-3), model)
    memory, scores, cart = [], [], Cart()

    def loss(m, state, action, goal):
        q = wb.take_along_axis(m(state), wb.expand_dims(action, -1), -1)
        return wb.huber_loss(wb.squeeze(q, -1), goal)

    for episode in range(episodes):
        state, total, ended = cart.reset(), 0.0, False
        while not ended:
            explores = random.random() < max(0.02, 1 - episode / 60)
            action = random.randrange(2) if explores else model(wb.array([state])).argmax().item()
            after, reward, fell, ended = cart.step(action)
            memory.append((state, action, reward, after, float(fell)))
            state, total = after, total + reward
            if len(memory) < 256:
                continue
            s, a, r, n, f = zip(*random.sample(memory[-20000:], 64))
            best = target(wb.array(n)).max(axis=-1)
            goal = wb.array(r) + 0.99 * best * (1 - wb.array(f))
            wb.train_step(loss, model, optimiser, wb.array(s), wb.array(a, "int32"), goal)
        if episode % 5 == 0:
            target = model.clone()
        scores.append(total)
        if episode % 25 == 24:
            print("episode %3d  mean of 25: %.1f" % (episode + 1, sum(scores[-25:]) / 25))
    return sum(scores[-25:]) / 25


if __name__ == "__main__":
    main()
