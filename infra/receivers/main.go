// Receives webhooks with Go's net/http on the port of its argument, and works after the answer.
package main

import (
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"time"
)

func note(r *http.Request) error {
	file, err := os.OpenFile(os.Getenv("RECEIVED"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	port := r.RemoteAddr[strings.LastIndexByte(r.RemoteAddr, ':')+1:]
	now := float64(time.Now().UnixMilli()) / 1000
	_, err = fmt.Fprintf(file, "%s %s %.3f\n", r.Header.Get("X-Service-Delivery-Id"), port, now)
	return err
}

func receive(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	if err == nil {
		err = note(r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Length", "2")
	io.WriteString(w, "ok")
	w.(http.Flusher).Flush()
	time.Sleep(time.Duration(50+rand.Intn(250)) * time.Millisecond)
}

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(receive)))
}
