import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  // `client/openapi.ts` is generated.
  { ignores: ['dist/', 'node_modules/', '.sendwright/', 'client/openapi.ts'] },
  eslint.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['dev/*.js', 'src/dashboard/assets/*.js', 'src/site/assets/*.js'] },
      },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-lines': ['error', { max: 400 }],
      'no-duplicate-imports': ['error', { allowSeparateTypeImports: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // A cast after a check that the compiler cannot follow reads better than a second check.
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/require-await': 'off',
      // SDKs declare their plain request bodies as classes.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
    },
  },
  {
    // node:test returns promises that the runner itself awaits.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'it', 'describe', 'suite'] },
          ],
        },
      ],
    },
  },
  {
    files: ['**/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: { process: 'readonly', console: 'readonly' } },
  },
  {
    // Runs in browsers.
    files: ['src/dashboard/assets/*.js', 'src/site/assets/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'document',
          'navigator',
          'getSelection',
          'getComputedStyle',
          'matchMedia',
          'ResizeObserver',
          'setTimeout',
          'setInterval',
          'localStorage',
          'fetch',
          'scrollBy',
          'Option',
          'CSS',
          'performance',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
