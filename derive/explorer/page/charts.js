// Pictures as SVG: lines, bands and the phase diagram. Colours come from the style sheet, texts are set as text.
'use strict';

const SIZE = {width: 420, height: 250, left: 52, right: 10, top: 8, bottom: 34};
const COLORS = 6, DASHES = ['', '6 3', '2 3'];

function element(name, attributes = {}, text = null) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function short(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 1e4 || size < 1e-3 ? value.toExponential(size >= 1e100 ? 0 : 1).replace('.0e', 'e').replace('e+', 'e')
                                    : String(Number(value.toPrecision(4)));
}

function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : x => x, a = f(low), b = f(high) === f(low) ? f(low) + 1 : f(high);
  const place = value => from + (to - from) * (f(value) - a) / (b - a);
  place.inverse = pixel => { const x = a + (b - a) * (pixel - from) / (to - from); return log ? 10 ** x : x; };
  return place;
}

function ticks(low, high, log) {
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first + 1) / 6)), found = [];
    for (let k = first; k <= last; k += step) found.push(10 ** k);
    if (found.length >= 2) return found;
    return [low, Math.sqrt(low * high), high].map(x => Number(x.toPrecision(2))).filter((x, i, all) => all.indexOf(x) === i);
  }
  const rough = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * unit).find(s => s >= rough), found = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-9; x += step) found.push(Number(x.toPrecision(12)));
  return found;
}

function frame(x, y, title) {
  const S = SIZE, svg = element('svg', {viewBox: `0 0 ${S.width} ${S.height}`, role: 'img', 'aria-label': title});
  const px = scale(x.low, x.high, S.left, S.width - S.right, x.log), py = scale(y.low, y.high, S.height - S.bottom, S.top, y.log);
  for (const value of ticks(x.low, x.high, x.log)) {
    svg.append(element('line', {class: 'grid', x1: px(value), x2: px(value), y1: S.top, y2: S.height - S.bottom}));
    svg.append(element('text', {x: px(value), y: S.height - S.bottom + 14, 'text-anchor': 'middle'}, short(value)));
  }
  for (const value of ticks(y.low, y.high, y.log)) {
    svg.append(element('line', {class: 'grid', x1: S.left, x2: S.width - S.right, y1: py(value), y2: py(value)}));
    svg.append(element('text', {x: S.left - 5, y: py(value) + 4, 'text-anchor': 'end'}, short(value)));
  }
  svg.append(element('path', {class: 'axis', d: `M${S.left} ${S.top}V${S.height - S.bottom}H${S.width - S.right}`}));
  svg.append(element('text', {x: (S.left + S.width - S.right) / 2, y: S.height - 4, 'text-anchor': 'middle'}, x.label));
  const clip = element('clipPath', {id: `clip-${frame.count = (frame.count || 0) + 1}`});
  clip.append(element('rect', {x: S.left, y: S.top, width: S.width - S.left - S.right, height: S.height - S.top - S.bottom}));
  const inside = element('g', {'clip-path': `url(#${clip.id})`});
  svg.append(clip, inside);
  return {svg, inside, px, py};
}

function path(points, px, py) {
  let text = '', pen = false;
  for (const point of points) {
    const fine = point && Number.isFinite(point[0]) && Number.isFinite(point[1]);
    const x = fine ? px(point[0]) : NaN, y = fine ? py(point[1]) : NaN;
    if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = false; continue; }
    text += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${Math.max(-1e4, Math.min(1e4, y)).toFixed(1)}`;
    pen = true;
  }
  return text;
}

function look(index) {
  return {stroke: `var(--c${index % COLORS})`, 'stroke-dasharray': DASHES[Math.floor(index / COLORS) % DASHES.length]};
}

function legend(entries) {
  const list = document.createElement('ul');
  list.className = 'legend';
  for (const {label, attributes, box} of entries) {
    const item = document.createElement('li'), sample = element('svg', {viewBox: '0 0 26 10', 'aria-hidden': 'true'});
    sample.append(box ? element('rect', {width: 26, height: 10, ...attributes})
                      : element('path', {class: 'line', d: 'M0 5H26', ...attributes}));
    item.append(sample, label);
    list.append(item);
  }
  return list;
}

// lines: [{points, label, index}], bands: [{upper, lower, label}], limits: [{value, label}]
function lineChart(place, {title, x, y, lines, bands = [], limits = []}) {
  const all = [...lines.flatMap(l => l.points), ...bands.flatMap(b => [...b.upper, ...b.lower])].filter(Boolean);
  const fine = all.map(p => p[1]).filter(v => Number.isFinite(v) && (!y.log || v > 0));
  if (!fine.length) { place.replaceChildren(Object.assign(document.createElement('p'), {textContent: 'Nothing to draw.'})); return; }
  let low = y.low ?? Math.min(...fine), high = y.high ?? Math.max(...fine);
  if (y.log) { low /= 1.15; high *= 1.15; } else { const room = (high - low || Math.abs(high) || 1) * 0.05; low -= y.low === undefined ? room : 0; high += room; }
  const {svg, inside, px, py} = frame(x, {...y, low, high}, title);
  const entries = [];
  for (const {upper, lower, label} of bands) {
    inside.append(element('path', {class: 'band', d: path([...upper, ...[...lower].reverse()], px, py) + 'Z'}));
    entries.push({label, box: true, attributes: {class: 'band'}});
  }
  for (const {value, label} of limits) {
    if (value < low || value > high) continue;
    inside.append(element('line', {class: 'limit', x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: py(value), y2: py(value)}));
    inside.append(element('text', {x: SIZE.left + 4, y: py(value) - 3}, label));
  }
  for (const {points, label, index} of lines) {
    inside.append(element('path', {class: 'line', d: path(points, px, py), ...look(index)}));
    entries.push({label, attributes: look(index)});
  }
  place.replaceChildren(svg, legend(entries));
}

function star(cx, cy, r = 7) {
  const points = Array.from({length: 10}, (_, k) => {
    const angle = Math.PI * (k / 5 - 0.5), radius = k % 2 ? r * 0.42 : r;
    return `${(cx + radius * Math.cos(angle)).toFixed(1)},${(cy + radius * Math.sin(angle)).toFixed(1)}`;
  });
  return element('polygon', {class: 'star', points: points.join(' ')});
}

// The plane of C_W and C_b with a dot that can be moved; `move(C_W, C_b)` is called when it is.
function phaseChart(place, data, move) {
  const names = ['ordered', 'chaotic', 'unbounded'], x = {low: 0, high: data.right, label: 'C_W, weight variance'};
  const {svg, inside, px, py} = frame(x, {low: 0, high: data.top}, 'Phase diagram of weight and bias variance');
  svg.removeAttribute('role');
  const rows = data.rows.length, columns = data.rows[0].length, seen = new Set();
  const dy = (py(0) - py(data.top)) / (rows - 1), dx = (px(data.right) - px(0)) / columns;
  data.rows.forEach((row, r) => {
    for (let start = 0, c = 1; c <= columns; c++) {
      if (row[c] === row[start]) continue;
      seen.add(+row[start]);
      inside.append(element('rect', {x: (px(0) + start * dx).toFixed(2), y: (py(data.top * r / (rows - 1)) - dy / 2).toFixed(2),
        width: ((c - start) * dx + 0.4).toFixed(2), height: (dy + 0.4).toFixed(2), fill: `var(--${names[+row[start]]})`}));
      start = c;
    }
  });
  const ink = {stroke: 'var(--ink)'}, dashed = {...ink, 'stroke-dasharray': '5 3'};
  inside.append(element('path', {class: 'line', d: path(data.lines.chi_perp, px, py), ...ink}));
  inside.append(element('path', {class: 'line', d: path(data.lines.chi_parallel, px, py), ...dashed}));
  for (const [w, b] of data.points) svg.append(star(px(w), py(b)));
  const dot = element('circle', {class: 'here', r: 7, tabindex: 0, role: 'application', 'aria-roledescription': 'point'});
  svg.append(dot);
  svg.append(element('text', {x: 12, y: SIZE.height / 2, transform: `rotate(-90 12 ${SIZE.height / 2})`, 'text-anchor': 'middle'}, 'C_b'));
  place.replaceChildren(svg, legend([
    ...[...seen].sort().map(k => ({label: data.names[k], box: true, attributes: {fill: `var(--${names[k]})`}})),
    {label: 'χ⊥ = 1', attributes: ink}, {label: 'χ∥ = 1', attributes: dashed}]));
  const put = (w, b) => {
    dot.setAttribute('cx', px(Math.min(w, data.right)));
    dot.setAttribute('cy', py(Math.min(b, data.top)));
    dot.setAttribute('aria-label', `Your initialization: C_W = ${short(w)}, C_b = ${short(b)}; arrow keys move it`);
    dot.dataset.weight = w; dot.dataset.bias = b;
  };
  const at = event => {
    const box = svg.getBoundingClientRect(), unit = SIZE.width / box.width;
    return [px.inverse((event.clientX - box.left) * unit), py.inverse((event.clientY - box.top) * unit)]
      .map((v, k) => Math.max(0, Math.min(v, k ? data.top : data.right)));
  };
  dot.addEventListener('pointerdown', event => { dot.setPointerCapture(event.pointerId); dot.focus(); });
  dot.addEventListener('pointermove', event => { if (dot.hasPointerCapture(event.pointerId)) move(...at(event)); });
  dot.addEventListener('keydown', event => {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (!by) return;
    event.preventDefault();
    const step = event.shiftKey ? 0.1 : 0.01;
    move(Math.max(0, +dot.dataset.weight + by[0] * step * data.right), Math.max(0, +dot.dataset.bias + by[1] * step * data.top));
  });
  return put;
}
