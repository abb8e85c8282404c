// Bringing a part of the page up to date: what is typed, the focus and the outputs stay.

const sources = new WeakMap();

/** Make the keyed children of `old` those of `fresh`. A group is gone through; any other is put in where its source differs. */
export function merge(old, fresh) {
  const kept = new Map([...old.children].map((child) => [child.dataset.key, child]));
  let previous = null;
  for (const child of [...fresh.children]) {
    let node = kept.get(child.dataset.key);
    kept.delete(child.dataset.key);
    if (!node) node = child;
    else if (child.hasAttribute("data-group") && node.hasAttribute("data-group")) merge(node, child);
    else if (differs(node, child)) {
      node.replaceWith(child);
      node = child;
    }
    if (node === child) remember(node);
    const place = previous ? previous.nextElementSibling : old.firstElementChild;
    if (place !== node) old.insertBefore(node, place);
    previous = node;
  }
  for (const gone of kept.values()) gone.remove();
}

function differs(node, child) {
  if (child.dataset.version !== undefined) return node.dataset.version !== child.dataset.version;
  return sources.get(node) !== child.outerHTML;
}

export function remember(node) {
  if (!node.hasAttribute("data-group")) sources.set(node, node.outerHTML);
  else for (const child of node.children) remember(child);
}
