// Recognises a digit from Go, from several goroutines at once.
package main

import (
	"fmt"
	"os"
	"sync"

	"classify/sinter"
)

const drawing = "  ####  " +
	"     ## " +
	"     ## " +
	"   ###  " +
	"     ## " +
	"     ## " +
	" #   ## " +
	"  ####  "

func main() {
	path := "demo/digits.onnx"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := classify(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func classify(path string) error {
	session, err := sinter.Open(path)
	if err != nil {
		return err
	}
	defer session.Close()

	image := sinter.Tensor{Data: make([]float32, 64), Dims: []int64{1, 1, 8, 8}}
	for i := range image.Data {
		if drawing[i] == '#' {
			image.Data[i] = 1
		}
	}
	answers := make([]sinter.Tensor, 4)
	failures := make([]error, len(answers))
	var wait sync.WaitGroup
	for i := range answers {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			answers[i], failures[i] = session.Run("image", image, "probabilities")
		}(i)
	}
	wait.Wait()
	for i := range answers {
		if failures[i] != nil {
			return failures[i]
		}
	}
	best := 0
	for i, p := range answers[0].Data {
		if p > answers[0].Data[best] {
			best = i
		}
	}
	fmt.Printf("this is a %d (%.1f %%)\n", best, 100*answers[0].Data[best])

	wrong := sinter.Tensor{Data: make([]float32, 4), Dims: []int64{1, 1, 2, 2}}
	if _, err := session.Run("image", wrong, "probabilities"); err != nil {
		fmt.Println("a wrong shape is refused:", err)
	}
	return nil
}
