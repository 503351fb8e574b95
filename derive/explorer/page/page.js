// The page: what is typed and slid becomes a question, answers become pictures. The question is the page's address.
'use strict';

const $ = id => document.getElementById(id);
const source = typeof STORED === 'undefined' ? new Live() : new Stored(STORED, RECURSIONS);
const DEFAULT = {activation: 'gelu', depth: 16, width: 128, C_W: null, C_b: null, input_norm: null};
const SLIDERS = {C_W: [x => x, x => x], C_b: [x => x, x => x], input_norm: [x => x, x => x], depth: [x => x, x => Math.round(x)],
                 width: [x => Math.log2(x), x => Math.round(2 ** x)]};
const QUICK = ['activation', 'depth', 'recommendation'], SLOW = ['criticality', 'phase', 'exponents'];
let state = {...DEFAULT}, shown = {}, data = {}, put = null, wrong = null;

function fromAddress() {
  const given = new URLSearchParams(location.search || location.hash.slice(1));
  state = {...DEFAULT};
  if (given.get('activation')) state.activation = given.get('activation').slice(0, 2000);
  for (const name of ['depth', 'width', 'C_W', 'C_b', 'input_norm']) {
    const value = given.get(name) === null ? NaN : Number(given.get(name));
    if (Number.isFinite(value) && value >= 0) state[name] = value;
  }
  state.depth = Math.max(1, Math.min(1000, Math.round(state.depth)));
  state.width = Math.max(1, Math.min(1e9, Math.round(state.width)));
  if ((state.C_W === null) !== (state.C_b === null)) state.C_W = state.C_b = null;
}

function toAddress() {
  const text = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== null)).toString();
  history.replaceState(null, '', location.protocol === 'file:' || typeof STORED !== 'undefined' ? `#${text}` : `?${text}`);
}

function question() {
  const asked = {activation: state.activation, depth: state.depth};
  for (const name of ['C_W', 'C_b', 'input_norm']) if (state[name] !== null) asked[name] = state[name];
  return asked;
}

function key(part) {
  if (part === 'depth') return JSON.stringify(question());
  return JSON.stringify([state.activation, part === 'recommendation' ? state.depth : null]);
}

// One stream of questions: the newest is asked, the one before is dropped once it has lasted a second.
class Channel {
  constructor(parts) { this.parts = parts; this.controller = null; this.again = false; this.since = 0; this.activation = ''; }

  update() {
    const wanted = this.parts.filter(part => shown[part] !== key(part));
    if (!wanted.length) return;
    if (this.controller) {
      this.again = true;
      if (this.activation !== state.activation || performance.now() - this.since > 1000) this.controller.abort();
      return;
    }
    this.run(wanted);
  }

  async run(wanted) {
    const controller = this.controller = new AbortController(), keys = Object.fromEntries(wanted.map(p => [p, key(p)]));
    this.since = performance.now(); this.activation = state.activation; this.again = false;
    const typed = state.activation;
    let lost = false;
    try {
      await source.ask(wanted, question(), message => {
        if (typed !== state.activation) return;
        if (message.progress) busy(this, message.progress);
        if (message.part) receive(message, keys);
      }, controller.signal);
      if (typed === state.activation) for (const part of wanted) shown[part] = keys[part];
    } catch (error) {
      if (error instanceof Gone) lost = true; else if (!controller.signal.aborted) throw error;
    }
    this.controller = null;
    busy(this, null);
    if (lost) serverGone(); else if (this.again && !stopped) this.update();
  }
}

const quick = new Channel(QUICK), slow = new Channel(SLOW), reports = new Channel([]);
const doing = new Map();
let stopped = false, gone = false, timer = 0;

function busy(channel, words) {
  if (words) { doing.set(channel, words); if (gone) { gone = false; } } else doing.delete(channel);
  status();
}

function status() {
  clearTimeout(timer);
  const now = performance.now(), lines = [...doing].filter(([c]) => now - c.since > 400);
  $('stop').hidden = !lines.some(([c]) => now - c.since > 1000);
  if (gone) $('progress').textContent = 'The server does not answer. Start it again with derive explore; what you see stays.';
  else if (lines.length) $('progress').textContent = lines.map(([c, words]) => `${words} (${Math.round((now - c.since) / 1000)} s)`).join('; ') + ' …';
  else $('progress').textContent = stopped ? 'Stopped.' : '';
  if (doing.size) timer = setTimeout(status, 300);
}

function serverGone() {
  gone = true;
  status();
  setTimeout(() => { quick.update(); slow.update(); }, 2000);
}

function changed() {
  stopped = false;
  toAddress();
  sliders();
  draw();
  for (const card of document.querySelectorAll('main section')) card.classList.toggle('stale', false);
  if (shown.activation !== key('activation')) document.querySelectorAll('main section').forEach(s => s.classList.add('stale'));
  quick.update();
  slow.update();
}

const CARDS = {activation: ['card-activation'], depth: ['card-kernel', 'card-ratios'], phase: ['card-phase'], criticality: ['card-phase'],
               recommendation: ['card-recommendation'], exponents: ['card-exponents']};

function receive({part, data: found, error}, keys) {
  if (part === 'activation') {
    wrong = error || null;
    $('wrong').hidden = !error;
    $('wrong').textContent = error || '';
    $('activation').setAttribute('aria-invalid', error ? 'true' : 'false');
  }
  if (wrong) return;
  data[part] = error ? {error} : found;
  shown[part] = keys[part];
  for (const id of CARDS[part] || []) $(id).classList.remove('stale');
  if (part === 'depth' && found && state.C_W === null) Object.assign(start, {C_W: found.C_W, C_b: found.C_b, input_norm: found.input_norm});
  if (part === 'phase') put = null;
  draw(part);
  sliders();
}

const start = {C_W: 1, C_b: 0, input_norm: 1};  // the recommended point, where the sliders rest until they are moved

function value(name) { return state[name] ?? start[name]; }

function sliders() {
  if (document.activeElement !== $('activation')) $('activation').value = state.activation;
  const phase = data.phase && !data.phase.error ? data.phase : null;
  const most = {C_W: phase ? phase.right : 4, C_b: phase ? phase.top : 1, input_norm: 4, depth: 100, width: 14};
  for (const [name, [to]] of Object.entries(SLIDERS)) {
    const place = to(value(name)), number = $(`${name}-number`);
    $(name).max = Math.max(most[name], place);
    if (Number($(name).value) !== place) $(name).value = place;
    if (document.activeElement !== number) number.value = Number(value(name).toPrecision(6));
    $(name).setAttribute('aria-valuetext', short(value(name)));
  }
}

function slide(name, number) {
  if (!Number.isFinite(number) || number < 0) return;
  if (name === 'depth' || name === 'width') state[name] = Math.max(1, Math.min(name === 'depth' ? 1000 : 1e9, Math.round(number)));
  else {
    for (const other of ['C_W', 'C_b', 'input_norm']) state[other] = value(other);  // all three are now the user's
    state[name] = Math.min(1e6, Number(number.toPrecision(6)));
  }
  changed();
}

function move(weight, bias) {
  for (const other of ['C_W', 'C_b', 'input_norm']) state[other] = value(other);
  state.C_W = Number(weight.toPrecision(5));
  state.C_b = Number(bias.toPrecision(5));
  changed();
}

function trouble(place, error) {
  place.replaceChildren(Object.assign(document.createElement('p'), {textContent: error, className: 'wrong'}));
}

function draw(part = null) {
  const wants = name => data[name] && (part === null || part === name);
  if (part === 'activation' && data.activation) drawActivation(data.activation);
  if (part === 'criticality' && data.criticality) drawClass(data.criticality);
  if (data.phase && (part === null || part === 'phase' || part === 'depth')) drawPhase(data.phase);
  if (wants('depth')) drawDepth(data.depth);
  if (wants('recommendation')) drawRecommendation(data.recommendation);
  if (part === 'exponents' && data.exponents) drawExponents(data.exponents);
}

function drawActivation(found) {
  if (found.error) return;
  $('formula').innerHTML = found.formula;  // MathML that our own printer wrote
  document.title = `${found.name}: effective theory`;
  const labels = ['σ', 'σ′', 'σ″'];
  lineChart($('chart-sigma'), {title: `${found.name} and its first two derivatives`, x: {low: -4, high: 4, label: 'z'}, y: {},
    lines: found.curves.map((curve, index) => ({points: curve.map((v, i) => [found.z[i], v ?? NaN]), label: labels[index], index}))});
}

function drawClass(found) {
  $('class').replaceChildren();
  if (found.error) { trouble($('class'), found.error); return; }
  $('class').append(`Class: ${found.class}. `);
  if (found.points.length) {
    const [K, w, b] = found.points[0].shown;
    const formula = document.createElement('span');
    formula.innerHTML = `K* = ${K}, C<sub>W</sub> = ${w}, C<sub>b</sub> = ${b}`;
    $('class').append('Critical at ', formula, ` (${found.points[0].stability}).`);
  } else $('class').append(found.reason);
}

function drawPhase(found) {
  if (found.error) { trouble($('chart-phase'), found.error); return; }
  put ??= phaseChart($('chart-phase'), found, move);
  put(value('C_W'), value('C_b'));
}

function drawDepth(found) {
  if (found.error) { for (const id of ['chart-kernel', 'chart-ratios']) trouble($(id), found.error); $('kernel-note').textContent = ''; return; }
  const n = state.width, written = name => name.replaceAll('Theta', 'Θ').replaceAll('^2', '²').replaceAll('^3', '³'), layers = found.K.map((_, l) => l + 1), x = {low: 1, high: Math.max(2, layers.length), label: 'layer ℓ'};
  const mean = found.G1 ? found.K.map((k, l) => k + found.G1[l] / n) : null;
  const spread = found.V ? found.K.map((k, l) => Math.sqrt(Math.max(0, (found.V[l] + 2 * k * k) / n))) : null;
  const log = Math.max(...found.K) > 30 * Math.min(...found.K), floor = Math.min(...found.K) / 10;
  const lines = [{points: found.K.map((k, l) => [l + 1, k]), label: 'K', index: 0}], bands = [];
  if (mean) lines.push({points: mean.map((k, l) => [l + 1, k]), label: `K + G1/n at n = ${n}`, index: 1});
  if (spread) bands.push({label: 'one s.d. over networks', upper: spread.map((s, l) => [l + 1, (mean || found.K)[l] + s]),
                          lower: spread.map((s, l) => [l + 1, Math.max((mean || found.K)[l] - s, log ? floor : 0)])});
  lineChart($('chart-kernel'), {title: `K from layer 1 (${short(found.K[0])}) to ${layers.length} (${short(found.K.at(-1))})`,
                                x, y: {log, ...(log ? {low: floor} : {})}, lines, bands});
  const chi = found.chi_perp.at(-1);
  $('kernel-note').textContent = 'The band is where the mean square of a layer’s n preactivations lies in a sampled network: ' +
    '± √((V + 2K²)/n) around K + G1/n.' + (chi === undefined ? '' : ` χ⊥ at the last step: ${short(chi)}.`);
  const sizes = Object.entries(found.ratios).map(([name, own]) => [written(name), own.map(v => Math.abs(v) / n)]);
  const largest = sizes.reduce((best, [name, own]) => own.at(-1) > best[1] ? [name, own.at(-1)] : best, ['', 0]);
  lineChart($('chart-ratios'), {title: `Ratios against depth; the largest at the output is ${largest[0]}, ${short(largest[1])}`, x,
    y: {log: true, low: Math.max(1e-6, Math.min(0.01, largest[1] / 100))}, limits: [{value: 0.1, label: '10 %'}, {value: 1, label: '100 %: no expansion'}],
    lines: sizes.map(([name, own], index) => ({points: own.map((v, l) => [l + 1, v > 0 ? v : NaN]), label: name, index}))});
  const missing = Object.entries(found.missing);
  const verdict = largest[1] >= 1 ? 'The first correction is as large as the leading term: widen the network.' :
    largest[1] > 0.1 ? 'More than 10 %: first order in 1/n is not enough.' : 'Wide enough for first order in 1/n.';
  $('ratios-note').textContent = `At n = ${n} the largest ratio at the output is ${largest[0]}: ${(100 * largest[1]).toPrecision(3)} %. ${verdict}` +
    (missing.length ? ` Without a ratio: ${missing.map(([name]) => name).join(', ')} (${missing[0][1]}).` : '');
}

function rows(pairs) {
  const table = document.createElement('table'), body = table.createTBody();
  for (const [name, text] of pairs) {
    const row = body.insertRow();
    row.insertCell().append(name);
    row.insertCell().append(text);
  }
  return table;
}

function drawRecommendation(found) {
  const place = $('recommendation');
  if (found.error) { trouble(place, found.error); return; }
  const command = document.createElement('code'), notes = document.createElement('ul'), more = document.createElement('details');
  command.textContent = `derive recommend ${/^[\w]+$/.test(found.activation) ? found.activation : JSON.stringify(found.activation)} --depth ${found.depth} --width ${state.width}`;
  notes.className = 'notes';
  for (const note of found.notes) notes.append(Object.assign(document.createElement('li'), {textContent: note}));
  more.append(Object.assign(document.createElement('summary'), {textContent: 'Where each number comes from'}), notes);
  const range = own => own.every(v => short(v) === short(own[0])) ? short(own[0]) : `${short(own[0])} (layer 1) … ${short(own.at(-1))} (layer ${own.length})`;
  place.replaceChildren(rows([
    ['depth', String(found.depth)], ['C_b', short(found.C_b.value)], ['C_W', short(found.C_W.value)], ['inputs’ x·x/n₀', short(found.input_norm)],
    ['λ_b', range(found.lambda_b)], ['λ_W', range(found.lambda_W)], ['largest stable η', short(found.eta_max)],
    ['multiply targets by', short(found.target_scale)], ['width for 10 %', String(found.width)],
    ['best L/n', found.aspect_ratio === null ? '–' : short(found.aspect_ratio)]]), command, more);
}

function drawExponents(found) {
  const place = $('exponents');
  if (found.error) { trouble(place, found.error); return; }
  const table = document.createElement('table'), head = table.createTHead().insertRow(), body = table.createTBody(), box = document.createElement('div');
  for (const text of ['tensor', found.plateau ? 'on the plateau' : 'behaves as']) head.append(Object.assign(document.createElement('th'), {textContent: text}));
  for (const row of found.rows) {
    const line = body.insertRow();
    line.insertCell().innerHTML = row.tensor;
    const cell = line.insertCell();
    if (row.behaves) cell.innerHTML = row.behaves; else cell.textContent = `does not exist: ${row.reason}`;
  }
  box.className = 'scroll';
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', 'Table of exponents');
  box.append(table);
  const notes = document.createElement('ul');
  notes.className = 'notes';
  for (const note of found.notes) notes.append(Object.assign(document.createElement('li'), {textContent: note}));
  const power = document.createElement('p');
  if (found.p_perp) power.innerHTML = `p<sub>⊥</sub> = ${found.p_perp}`;
  place.replaceChildren(power, box, notes);
}

async function report() {
  if (typeof STORED !== 'undefined') {
    const own = STORED.reports[data.activation?.name];
    if (own) location.href = own;
    return;
  }
  const controller = reports.controller = new AbortController();
  reports.since = performance.now();
  $('report').disabled = true;
  try {
    await source.ask(['report'], question(), message => {
      if (message.progress) busy(reports, message.progress);
      if (message.error) { $('wrong').hidden = false; $('wrong').textContent = message.error; }
      if (message.part === 'report' && message.data) {
        const link = document.createElement('a');
        link.href = URL.createObjectURL(new Blob([message.data.html], {type: 'text/html'}));
        link.download = message.data.name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      }
    }, controller.signal);
  } catch (error) { if (error instanceof Gone) serverGone(); }
  $('report').disabled = false;
  reports.controller = null;
  busy(reports, null);
}

let typing = 0;
function typed() {
  const text = $('activation').value;
  if (!text.trim() || text === state.activation) return;
  Object.assign(state, {activation: text, C_W: null, C_b: null, input_norm: null});
  changed();
}
$('activation').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(typed, 350); });
$('activation').addEventListener('change', () => { clearTimeout(typing); typed(); });
$('controls').addEventListener('submit', event => { event.preventDefault(); clearTimeout(typing); typed(); });
for (const [name, [, from]] of Object.entries(SLIDERS)) {
  $(name).addEventListener('input', () => slide(name, from(Number($(name).value))));
  $(`${name}-number`).addEventListener('change', () => slide(name, Number($(`${name}-number`).value)));
}
$('critical').addEventListener('click', () => { Object.assign(state, {C_W: null, C_b: null, input_norm: null}); changed(); });
$('share').addEventListener('click', async () => {
  try { await navigator.clipboard.writeText(location.href); $('progress').textContent = 'The address is copied.'; }
  catch { $('progress').textContent = location.href; }
});
$('report').addEventListener('click', report);
$('stop').addEventListener('click', () => { stopped = true; for (const c of [quick, slow, reports]) { c.again = false; c.controller?.abort(); } });
addEventListener('popstate', () => { fromAddress(); changed(); });
addEventListener('hashchange', () => { fromAddress(); changed(); });

$('kind').textContent = source.constructor.text;
fromAddress();
$('activation').value = state.activation;
changed();
