// Ranks and ranges of a benchmark, by what is chosen above the table.
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const text = (tag, content, attributes = {}) => {
  const element = document.createElement(tag);
  element.textContent = content;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const fill = (select, pairs) => {
  const kept = select.value;
  select.replaceChildren(...pairs.map(([value, words]) => text("option", words, { value })));
  if (pairs.some(([value]) => String(value) === kept)) select.value = kept;
};
const digits = (metric, value) => metric === "seconds" ? value.toPrecision(3) : value.toFixed(4);

// Ranks of the methods that have a value; ties share the better rank. Methods that were given the
// truth push nobody back; their own rank only says where their row stands, and is not shown.
const ranked = (rows, metric) => {
  const sign = data.metrics[metric].better === "higher" ? -1 : 1;
  const order = (a, b) => sign * (a[metric][0] - b[metric][0]);
  const here = rows.filter(row => row[metric]).sort(order);
  const rivals = here.filter(row => !row.truth);
  return here.map(row => ({ ...row, rank: 1 + rivals.filter(rival => order(rival, row) < 0).length }));
};
const unlessTruth = (row, content) => text("td", row.truth ? "–" : content);

const range = (row, metric, low, high) => {
  const [median, least, greatest] = row[metric];
  const x = value => 2 + 96 * (high > low ? (value - low) / (high - low) : .5);
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const said = `from ${digits(metric, least)} to ${digits(metric, greatest)}`;
  svg.setAttribute("aria-label", said);
  const title = document.createElementNS(ns, "title");
  title.textContent = `${digits(metric, median)}, ${said}`;
  svg.append(title);
  const draw = (start, width, y, height, color) => {
    const box = document.createElementNS(ns, "rect");
    Object.entries({ x: start, width, y, height, fill: `var(${color})` })
      .forEach(([name, value]) => box.setAttribute(name, value));
    svg.append(box);
  };
  draw(x(least), Math.max(x(greatest) - x(least), .5), 3.5, 3, "--faint");
  draw(x(median) - .4, .8, 1, 8, "--accent");
  return svg;
};

const header = words => {
  at("head").replaceChildren(document.createElement("tr"));
  at("head").firstChild.append(...words.map(word => text("th", word, { scope: "col" })));
};
const named = row => {
  const cell = text("th", "", { scope: "row" });
  cell.append(text("span", row.method, row.truth ? { class: "truth" } : {}));
  if (row.how) cell.append(text("small", row.how));
  return cell;
};

const oneSetting = (setting, metric) => {
  const rows = ranked(setting.rows, metric);
  const ends = rows.flatMap(row => row[metric].slice(1));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  header(["Rank", "Method", "Median", "Least", "Greatest", "Cells"]);
  const scale = rows.length ? ` from ${digits(metric, low)} to ${digits(metric, high)}` : "";
  at("head").firstChild.append(text("th", `Range${scale}`, { scope: "col", class: "range" }));
  at("body").replaceChildren(...rows.map(row => {
    const line = document.createElement("tr");
    line.append(unlessTruth(row, row.rank), named(row));
    line.append(...row[metric].map(value => text("td", digits(metric, value))), text("td", row.n));
    const cell = text("td", "", { class: "range" });
    cell.append(range(row, metric, low, high));
    line.append(cell);
    return line;
  }));
};

const allSettings = (settings, metric) => {
  const methods = new Map();
  const sign = data.metrics[metric].better === "higher" ? 1 : -1;
  for (const setting of settings) {
    for (const row of ranked(setting.rows, metric)) {
      const one = methods.get(row.method) ?? { ranks: [], medians: [], worst: [], truth: row.truth, how: row.how };
      one.ranks.push(row.rank);
      one.medians.push(row[metric][0]);
      one.worst.push(sign > 0 ? row[metric][1] : row[metric][2]);
      methods.set(row.method, one);
    }
  }
  const mean = values => values.reduce((a, b) => a + b, 0) / values.length;
  const middle = values => {
    const sorted = [...values].sort((a, b) => a - b), n = sorted.length;
    return (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2;
  };
  const rows = [...methods].map(([method, one]) => ({ method, rank: mean(one.ranks), ...one }));
  rows.sort((a, b) => a.rank - b.rank || Number(b.truth ?? 0) - Number(a.truth ?? 0));
  header(["Mean rank", "Method", "Median of medians", "Worst cell", "First in", "Settings"]);
  at("body").replaceChildren(...rows.map(row => {
    const worst = sign > 0 ? Math.min(...row.worst) : Math.max(...row.worst);
    const line = document.createElement("tr");
    line.append(unlessTruth(row, row.rank.toFixed(2)), named(row),
      text("td", digits(metric, middle(row.medians))), text("td", digits(metric, worst)),
      unlessTruth(row, row.ranks.filter(rank => rank === 1).length), text("td", row.ranks.length));
    return line;
  }));
};

// Where there are many settings, one choice for each parameter narrows the list.
const MANY = 20;
const filters = board => {
  at("filters").replaceChildren(...(board.settings.length > MANY ? board.varied : []).map((name, i) => {
    const label = text("label", `${name} `), select = document.createElement("select");
    const values = [...new Set(board.settings.map(setting => setting.values[i]))];
    fill(select, [["", "any"], ...values.map(value => [value, value])]);
    select.addEventListener("change", show);
    label.append(select);
    return label;
  }));
};
const chosen = board => {
  const wanted = [...at("filters").querySelectorAll("select")].map(select => select.value);
  return board.settings.map((setting, i) => [i, setting])
    .filter(([, setting]) => wanted.every((value, i) => !value || setting.values[i] === value));
};

const show = () => {
  const board = data.boards[at("board").value];
  if (!board) { at("caption").textContent = "No results yet."; return; }
  const here = chosen(board), pairs = here.map(([i, setting]) => [i, setting.name]);
  const all = here.length < board.settings.length ? `these ${here.length} settings` : "all settings";
  fill(at("setting"), here.length > 1 ? [["all", all], ...pairs] : pairs);
  const metric = at("metric").value, { words, better } = data.metrics[metric];
  const name = board.settings.length > 1 ? at("setting").selectedOptions[0]?.textContent : "";
  const where = [name, board.fixed].filter(Boolean).join("; ") || "the only setting";
  at("purpose").textContent = board.about;
  at("ways").textContent = board.ways ? `Methods, unless their row says otherwise: ${board.ways}.` : "";
  at("caption").textContent = here.length
    ? `${words}, ${better} is better, at ${where}.` : "No setting matches.";
  const settings = at("setting").value === "all" ? here.map(([, setting]) => setting)
    : [board.settings[at("setting").value]].filter(Boolean);
  if (settings.length === 1) oneSetting(settings[0], metric);
  else allSettings(settings, metric);
  at("truth").hidden = !settings.some(setting => setting.rows.some(row => row.truth && row[metric]));
};

at("about").textContent = data.boards.length > 1
  ? `${data.source} in ${data.boards.length} benchmarks.` : `${data.source}.`;
fill(at("board"), data.boards.map((board, i) => [i, board.name]));
fill(at("metric"), Object.entries(data.metrics).map(([name, one]) => [name, one.words]));
if (data.missing.length) {
  at("missing").hidden = at("missing").open = false;
  const open = [...new Set(data.missing.map(line => line.split(", ")[0]))].join(", ");
  at("missing").querySelector("summary").textContent =
    `Not complete: ${data.missing.length === 1 ? "1 method has" : `${data.missing.length} methods have`} `
    + `cells without a result (${open})`;
  at("missing").querySelector("ul").append(...data.missing.map(line => text("li", line)));
}
at("made").querySelector("ul").append(...data.made_with.map(line => text("li", line)));
for (const id of ["setting", "metric"]) at(id).addEventListener("change", show);
const open = () => {  // another benchmark has other settings: begin with all of them
  at("setting").replaceChildren();
  if (data.boards.length) filters(data.boards[at("board").value]);
  show();
};
at("board").addEventListener("change", open);
open();
})();
