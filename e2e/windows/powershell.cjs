// Parses the PowerShell script on standard input:
// node --liftoff-only powershell.cjs TREE-SITTER-WASM. Without that option node stays
// for minutes to optimise the grammar.
const fs = require("fs");
const path = require("path");
const dir = path.join(process.argv[2], "wasm");
const { Parser, Language } = require(path.join(dir, "tree-sitter.js"));

(async () => {
  await Parser.init({ locateFile: (file) => path.join(dir, file) });
  const parser = new Parser();
  parser.setLanguage(await Language.load(path.join(dir, "tree-sitter-powershell.wasm")));
  const root = parser.parse(fs.readFileSync(0, "utf8")).rootNode;
  const found = [];
  (function look(node) {
    if (node.isError || node.isMissing) found.push(`line ${node.startPosition.row + 1}: ${node.type}: ${node.text.slice(0, 60)}`);
    node.children.forEach(look);
  })(root);
  console.log(found.join("\n"));
  process.exit(root.hasError ? 1 : 0);
})();
