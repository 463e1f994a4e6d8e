// Whoever points at a mark of a picture reads its values at once, beside the pointer: its title, and of a line the values of the
// point that is next to the pointer, by the scales in data-x and data-y (pictures.py). With the keyboard, Tab leads to a picture.
// The arrow keys go from point to point and from line to line, and what is shown is announced, too. Escape closes it.
{ // a block, because scripts of a page share their names
  const KEYS = "Left and right arrow: the next value. Up and down arrow: the next line or group of marks. Escape: close.";

  const value = (scale, pixels) => {
    const [kind, first, step, unit, title] = scale.split("|");
    const height = Number(first) + Number(step) * pixels;
    const number = kind === "log" ? Math.exp(height) : height;
    const smallest = kind === "log" ? 0 : Math.abs(Number(step)) / 100; // what is nearer to 0 than a hundredth of a pixel is 0
    return `${title}: ${Number((Math.abs(number) < smallest ? 0 : number).toPrecision(3))}${unit}`;
  };

  const pointsOf = (mark) =>
    (mark.points ??= [...mark.getAttribute("d").matchAll(/[ML](-?[\d.e-]+),(-?[\d.e-]+)/g)].map((point) => [Number(point[1]), Number(point[2])]));

  const words = (mark, [x, y]) => [mark.dataset.words, value(mark.dataset.x, x), value(mark.dataset.y, y)].filter(Boolean).join("\n");

  const nearest = (mark, event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(mark.getScreenCTM().inverse());
    const far = ([x, y]) => Math.hypot(x - at.x, y - at.y);
    return pointsOf(mark).reduce((best, point) => (far(point) < far(best) ? point : best));
  };

  // The stops of the keyboard: lists of {words, place}, one list for each line, and one for the other marks of each group.
  // place() is where a stop is in the window, which changes with the window's size. Dots go from left to right, bars in their order.
  const stopsOf = (figure) => {
    const rows = new Map();
    for (const mark of figure.querySelectorAll("[data-words]")) {
      if (mark.nextElementSibling?.matches(".near")) continue; // the same line, thinner
      if (mark.dataset.x) {
        rows.set(mark, pointsOf(mark).map((point) => ({
          words: words(mark, point),
          place: () => new DOMPoint(...point).matrixTransform(mark.getScreenCTM()),
        })));
        continue;
      }
      const place = () => {
        const box = mark.getBoundingClientRect();
        return new DOMPoint(box.left + box.width / 2, box.top + box.height / 2);
      };
      const group = mark.parentNode;
      if (!rows.has(group)) rows.set(group, []);
      rows.get(group).push({ words: mark.dataset.words, place });
    }
    for (const [group, row] of rows) {
      if (!group.classList.contains("mark-symbol")) continue;
      const places = new Map(row.map((stop) => [stop, stop.place()]));
      row.sort((a, b) => places.get(a).x - places.get(b).x || places.get(a).y - places.get(b).y);
    }
    return [...rows.values()].filter((row) => row.length);
  };

  const added = (figure, kind) => {
    const part = document.createElement("div");
    part.className = kind;
    figure.append(part);
    return part;
  };

  for (const [number, figure] of document.querySelectorAll("figure.picture").entries()) {
    for (const title of figure.querySelectorAll("title")) {
      title.parentNode.dataset.words = title.textContent;
      title.remove(); // else the browser shows the same once more, a second later
    }
    if (!figure.querySelector("[data-words]")) continue;
    const tip = added(figure, "tip");
    const ring = added(figure, "ring"); // around the point that the keyboard has reached
    const said = added(figure, "said");
    const help = added(figure, "said");
    said.setAttribute("aria-live", "polite");
    help.id = `picture-${number}-keys`;
    help.textContent = KEYS;
    figure.tabIndex = 0;
    figure.setAttribute("role", "application"); // else a screen reader keeps the arrow keys to itself
    figure.setAttribute("aria-roledescription", "picture");
    figure.setAttribute("aria-describedby", help.id);
    let rows; // made at the first key
    let row = 0;
    let column = 0;

    const close = () => {
      tip.hidden = ring.hidden = true;
      said.textContent = "";
    };
    const show = (text, x, y) => {
      tip.hidden = false;
      tip.textContent = text;
      const box = figure.getBoundingClientRect();
      tip.style.left = Math.max(0, Math.min(x - box.left + 12, box.width - tip.offsetWidth)) + "px";
      tip.style.top = y - box.top + 16 + "px";
    };
    const showStop = () => {
      const stop = rows[row][column];
      const { x, y } = stop.place();
      const box = figure.getBoundingClientRect();
      ring.hidden = false;
      ring.style.left = x - box.left + "px";
      ring.style.top = y - box.top + "px";
      show(stop.words, x, y);
      said.textContent = stop.words.replaceAll("\n", "; ");
      ring.scrollIntoView({ block: "nearest", inline: "nearest" });
    };
    const step = (by) => {
      column += by;
      if (column >= 0 && column < rows[row].length) return;
      row = (row + by + rows.length) % rows.length;
      column = by > 0 ? 0 : rows[row].length - 1;
    };
    const turn = (by) => {
      const { x } = rows[row][column].place();
      row = (row + by + rows.length) % rows.length;
      const far = rows[row].map((stop) => Math.abs(stop.place().x - x));
      column = far.indexOf(Math.min(...far));
    };
    const moves = {
      ArrowRight: () => step(1),
      ArrowLeft: () => step(-1),
      ArrowDown: () => turn(1),
      ArrowUp: () => turn(-1),
      Home: () => { column = 0; },
      End: () => { column = rows[row].length - 1; },
    };

    close();
    figure.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-words]");
      close();
      if (mark) show(mark.dataset.x ? words(mark, nearest(mark, event)) : mark.dataset.words, event.clientX, event.clientY);
    });
    figure.addEventListener("pointerleave", close);
    figure.addEventListener("blur", close);
    figure.addEventListener("focus", () => {
      if (!figure.matches(":focus-visible")) return; // by the pointer
      rows ??= stopsOf(figure);
      showStop();
    });
    figure.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || !(event.key in moves)) return;
      event.preventDefault(); // else the page moves
      rows ??= stopsOf(figure);
      if (!ring.hidden) moves[event.key](); // after Escape, the first key shows the point where it was
      showStop();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  }
}
