//go:build !race

package listwatch_test

const underRace = false
