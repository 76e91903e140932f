import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/vendor/", ".venv/", "build/", "dist/", "runs/"] },
  js.configs.recommended,
  {
    files: ["protege/**/*.js"],
    languageOptions: { globals: globals.browser },
  },
  {
    files: ["tests/**/*.js", "*.js"],
    languageOptions: { globals: globals.node },
  },
  {
    rules: {
      eqeqeq: "error",
      "no-implicit-coercion": "error",
      "no-shadow": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "prefer-template": "error",
    },
  },
];
