// Where answers come from: this machine's server, or what is stored in the page (then only some activations).
'use strict';

const HEADER = 'X-Derive-Explorer';

class Gone extends Error {}

// Asks the server; `tell` gets each message as it arrives. Throws Gone where the server does not answer.
class Live {
  static text = 'Computed on this machine; nothing leaves it.';

  async ask(parts, question, tell, signal) {
    const address = 'ask?' + new URLSearchParams({parts: parts.join(','), ...question});
    let response, rest = '', finished = false;
    try {
      response = await fetch(address, {signal, headers: {[HEADER]: '1'}, cache: 'no-store'});
      if (!response.ok) { tell({part: parts[0], error: await response.text()}); return; }
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          const message = JSON.parse(line);
          if (message.done) finished = true; else tell(message);
        }
      }
    } catch (error) {
      if (signal.aborted) throw error;
      throw new Gone();
    }
    if (!finished && !signal.aborted) throw new Gone();
  }
}

// Answers from tables of brackets, interpolated, and from the recursions that the program wrote as JavaScript.
class Stored {
  static text = 'Stored answers for the built-in activations: brackets are interpolated in tables (some 0.1 %). ' +
                'For exact numbers and formulas of your own run: derive explore';

  constructor(data, recursions) { this.data = data; this.recursions = recursions; }

  async ask(parts, question, tell) {
    const text = question.activation.trim(), name = this.data.aliases[text] || text, own = this.data.activations[name];
    for (const part of parts) {
      if (!own) tell({part, error: 'This page knows the built-in activations only; derive explore reads any formula.'});
      else try { tell({part, data: this.part(part, own, question)}); } catch (error) { tell({part, error: error.message}); }
    }
  }

  part(part, own, question) {
    if (part === 'depth') return this.depth(own, question);
    if (part !== 'recommendation') { if (own[part].error) throw new Error(own[part].error); return own[part].data; }
    const depths = Object.keys(own.recommendation).map(Number).sort((a, b) => a - b);
    const nearest = depths.reduce((best, d) => Math.abs(d - question.depth) < Math.abs(best - question.depth) ? d : best);
    const found = own.recommendation[nearest];
    if (found.error) throw new Error(found.error);
    return found.data;
  }

  brackets(table, K) {
    const place = (Math.log(K) - table.start) / table.step, last = table.count - 1;
    if (!(place <= last)) throw new Error(`K = ${short(K)} leaves the table: the kernel grows.`);
    const first = Math.max(0, Math.min(last - 3, Math.floor(place) - 1)), t = Math.max(0, place) - first;
    const weights = [-(t - 1) * (t - 2) * (t - 3) / 6, t * (t - 2) * (t - 3) / 2, -t * (t - 1) * (t - 3) / 2, t * (t - 1) * (t - 2) / 6];
    return table.brackets.map(({power, values}) =>
      K ** power * weights.reduce((sum, w, k) => sum + w * values[first + k], 0));
  }

  depth(own, question) {
    const table = own.table, {names, first, kernel, step} = this.recursions[table.recursion], L = Number(question.depth);
    const start = own.start, given = question.C_W !== undefined;
    const b = given ? Number(question.C_b) : start.C_b, w = given ? Number(question.C_W) : start.C_W;
    const norm = question.input_norm !== undefined ? Number(question.input_norm) : given ? 1 : start.input_norm;
    const at = [], sources = [norm], carried = [];
    let K = first(norm, b, w, 0, 0)[names.indexOf('K')];
    for (let l = 1; l < L; l++) {
      const values = this.brackets(table, K), [next, source, multiplier] = kernel(K, b, w, values);
      at.push(values); sources.push(source); carried.push(multiplier);
      K = next;
    }
    const later = Array(L).fill(1);  // equal shares of the output's NTK: the equivalence principle
    for (let l = L - 2; l >= 0; l--) later[l] = later[l + 1] * carried[l];
    const rates = later.map((m, l) => [0.5 / (L * m), 0.5 / (L * m * sources[l])]);
    const states = [first(norm, b, w, ...rates[0])];
    for (let l = 1; l < L; l++) states.push(step(b, w, ...rates[l], states[l - 1], at[l - 1]));
    const of = name => names.includes(name) ? states.map(s => s[names.indexOf(name)]) : null;
    const K_ = of('K'), theta = of('Theta'), ratios = {};
    for (const [name, [title, k, t]] of Object.entries(this.data.ratios))
      if (names.includes(name)) ratios[title] = of(name).map((v, l) => v / K_[l] ** k / theta[l] ** t);
    return {C_b: b, C_W: w, input_norm: norm, K: K_, Theta: theta, G1: of('G1'), V: of('V'), chi_perp: carried, ratios,
            missing: table.missing};
  }
}
